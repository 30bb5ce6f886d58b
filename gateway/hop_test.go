package gateway_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/oncehttp"
)

// TestFraming: a request has the same form at the service whether it is guarded or not, first and after a connection that
// had died, and a keyed one is there once.
func TestFraming(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, body string
		length       []string
	}{
		{"POST", "", []string{"0"}},
		{"PUT", "", []string{"0"}},
		{"PATCH", "", []string{"0"}},
		{"DELETE", "", nil},
		{"GET", "", nil},
		{"HEAD", "", nil},
		{"POST", "x=1", []string{"3"}},
		{"DELETE", "x=1", []string{"3"}},
	} {
		for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key", "X-Other"} {
			t.Run(c.method+" "+c.body+" "+header, func(t *testing.T) {
				t.Parallel()
				u := newWire(t, func(head string) string {
					switch {
					case strings.Contains(head, "/dies"):
						return ""
					case strings.HasPrefix(head, "HEAD"):
						return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
					}
					return plainAnswer
				})
				every := &oncehttp.Options{Methods: []string{c.method}}
				g := routed(t, u.url(), io.Discard, every, nil, nil)
				body := func() io.Reader {
					if c.body == "" {
						return nil
					}
					return strings.NewReader(c.body)
				}
				guarded := header != "X-Other"
				for _, path := range []string{"/first", "/dies", "/last"} {
					a := send(t, c.method, g+path, "", body(), header, "K"+path[1:])
					lost := path == "/dies"
					if a.err != nil || (a.status == 200) == lost || guarded && !lost && a.header.Get("Idempotency-Status") != "executed" {
						t.Fatalf("%s: %+v", path, a)
					}
					heads := u.of(c.method, path)
					if guarded && len(heads) != 1 {
						t.Fatalf("%s came %d times", path, len(heads))
					}
					for _, head := range heads {
						if got := field(head, "Content-Length"); !slices.Equal(got, c.length) {
							t.Errorf("%s: Content-Length %q, want %q", path, got, c.length)
						}
						if got := field(head, "Transfer-Encoding"); got != nil {
							t.Errorf("%s: Transfer-Encoding %q", path, got)
						}
						if got := field(head, header); len(got) != 1 || got[0] != "K"+path[1:] {
							t.Errorf("%s: %s %q", path, header, got)
						}
					}
				}
			})
		}
	}
}

// TestUnguardedGetIsTriedAgain: net/http's own retry of a harmless request is none of our business.
func TestUnguardedGetIsTriedAgain(t *testing.T) {
	t.Parallel()
	var u *wire
	u = newWire(t, func(string) string {
		if n := len(u.of("GET", "/again")); n == 1 {
			return ""
		}
		return plainAnswer
	})
	g := routed(t, u.url(), io.Discard, nil, nil, nil)
	if a := send(t, "GET", g+"/warm", "", nil); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	if a := send(t, "GET", g+"/again", "", nil); a.status != 200 || len(u.of("GET", "/again")) != 2 {
		t.Fatalf("%+v, came %d times", a, len(u.of("GET", "/again")))
	}
}

// TestOurAnswersAreNotTheServices: what a route says of the service's 502 does not hold for ours, which says that there was
// no answer.
func TestOurAnswersAreNotTheServices(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(head string) string {
		if strings.Contains(head, "/said") {
			return "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
		}
		return ""
	})
	table := func(o oncehttp.Outcome) *oncehttp.Options {
		return &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{502: o, 504: o}}
	}
	g := routed(t, u.url(), io.Discard, nil, map[string]*oncehttp.Options{
		"/not-done": table(oncehttp.NotDone), "/final": table(oncehttp.Final), "/done": table(oncehttp.Done),
		"/said": table(oncehttp.Final), "/repeatable": table(oncehttp.Final),
	}, nil)
	for path, want := range map[string]struct {
		first, second int
		runs          int
	}{
		"/not-done":   {502, 409, 1},
		"/final":      {502, 409, 1},
		"/done":       {502, 409, 1},
		"/said":       {502, 502, 1},
		"/repeatable": {502, 502, 2},
	} {
		for i, status := range []int{want.first, want.second} {
			a := send(t, "POST", g+path, "K", strings.NewReader("x"))
			if a.status != status {
				t.Errorf("%s, request %d: %+v", path, i+1, a)
			}
		}
		if n := len(u.of("POST", path)); n != want.runs {
			t.Errorf("%s came %d times, want %d", path, n, want.runs)
		}
	}
}

// TestKeyIsNoHopByHopHeader: a client must not be able to strip the key off on its way.
func TestKeyIsNoHopByHopHeader(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(string) string { return plainAnswer })
	g := routed(t, u.url(), io.Discard, nil, map[string]*oncehttp.Options{
		"/own": {Keys: []oncehttp.KeySource{oncehttp.FromHeader("x-pay-id")}},
	}, func(o *gateway.Options) { o.Routes[0].KeyHeaders = []string{"x-pay-id"} })
	for _, c := range []struct{ path, header string }{
		{"/a", "Idempotency-Key"}, {"/b", "X-Idempotency-Key"}, {"/own", "X-Pay-Id"}, {"/c", "X-Request-Id"},
	} {
		a := send(t, "POST", g+c.path, "", nil, c.header, "K"+c.path[1:], "Connection", "X-Hop, "+c.header, "X-Hop", "1")
		heads := u.of("POST", c.path)
		if a.status != 200 || len(heads) != 1 {
			t.Fatalf("%+v, came %d times", a, len(heads))
		}
		if got := field(heads[0], c.header); len(got) != 1 || got[0] != "K"+c.path[1:] {
			t.Errorf("%s: %q", c.header, got)
		}
		if got := field(heads[0], "X-Hop"); got != nil {
			t.Errorf("a header of the hop went on: %q", got)
		}
	}
}

// TestBadUpgradeFreesTheKey: the proxy refuses some requests by itself, and then nothing was sent.
func TestBadUpgradeFreesTheKey(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(string) string { return plainAnswer })
	g := routed(t, u.url(), io.Discard, nil, nil, nil)
	a := send(t, "POST", g+"/a", "K", nil, "Connection", "Upgrade", "Upgrade", "w\u00e9")
	if a.status != http.StatusServiceUnavailable || len(u.of("POST", "/a")) != 0 {
		t.Fatalf("%+v", a)
	}
	if a := send(t, "POST", g+"/a", "K", nil); a.status != 200 {
		t.Fatalf("%+v", a)
	}
}
