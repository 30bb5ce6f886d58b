package gateway_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncehttp"
)

// byRequestID is a route whose key is the X-Request-Id.
func byRequestID(t *testing.T, upstream string, log io.Writer) string {
	t.Helper()
	return routed(t, upstream, log, nil, map[string]*oncehttp.Options{
		"/pay": {RequireKey: true, Keys: []oncehttp.KeySource{oncehttp.FromHeader("x-request-id")}},
	}, func(o *gateway.Options) { o.Routes[0].KeyHeaders = []string{"x-request-id"} })
}

// TestOurRequestIDIsNoKey: an id that we make is new with every try, so it would be no key.
func TestOurRequestIDIsNoKey(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(string) string { return plainAnswer })
	g := byRequestID(t, u.url(), io.Discard)
	for range 2 {
		if a := send(t, "POST", g+"/pay", "", nil); a.status != 400 || !strings.Contains(a.body, "key_missing") || len(a.header.Get("X-Request-Id")) != 32 {
			t.Fatalf("without one: %+v", a)
		}
		if a := send(t, "POST", g+"/pay", "", nil, "X-Request-Id", strings.Repeat("x", 256)); a.status != 400 || !strings.Contains(a.body, "key_invalid") {
			t.Fatalf("with one that is no key: %+v", a)
		}
	}
	if n := len(u.of("POST", "/pay")); n != 0 {
		t.Fatalf("came %d times", n)
	}
	for _, id := range []string{"a b", strings.Repeat("y", 200), `"quoted"`, "plain"} {
		for n, status := range []string{"executed", "replayed"} {
			a := send(t, "POST", g+"/pay", "", nil, "X-Request-Id", id)
			if a.status != 200 || a.header.Get("Idempotency-Status") != status || a.header.Get("X-Request-Id") != id {
				t.Errorf("%s, request %d: %+v", id, n+1, a)
			}
		}
		heads := u.of("POST", "/pay")
		if got := field(heads[len(heads)-1], "X-Request-Id"); len(got) != 1 || got[0] != id {
			t.Errorf("the service got %q for %q", got, id)
		}
	}
}

// TestKeyIsNotLogged: an X-Request-Id that is the key, by the route or by the client's choice, is logged as its digest.
func TestKeyIsNotLogged(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(string) string { return "" })
	var log lines
	g := byRequestID(t, u.url(), &log)
	send(t, "POST", g+"/pay", "", nil, "X-Request-Id", "secret-1")
	send(t, "GET", g+"/pay", "", nil, "X-Request-Id", "secret-2")
	send(t, "POST", g+"/other", "secret-3", nil, "X-Request-Id", "secret-3")
	send(t, "POST", g+"/other", "k", nil, "X-Request-Id", "plain")
	if text := log.String(); strings.Contains(text, "secret") || strings.Count(text, "request_id=") != 4 || !strings.Contains(text, "request_id=plain") {
		t.Error(text)
	}
	for _, text := range []string{"secret-1", "secret-2", "secret-3"} {
		if k, err := key.Parse(text); err != nil || !strings.Contains(log.String(), "request_id="+k.Digest()) {
			t.Errorf("no digest of %s in %s", text, log.String())
		}
	}
}

// TestOneRequestIDOnEveryAnswer: the service's echo does not double it, and answers before the answer do not lose it, nor
// what else we say.
func TestOneRequestIDOnEveryAnswer(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(head string) string {
		answer := "HTTP/1.1 200 OK\r\nX-Request-Id: " + field(head, "X-Request-Id")[0] + "\r\nContent-Length: 2\r\n\r\nok"
		switch {
		case strings.Contains(head, "/hints"):
			return "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n" + answer
		case strings.Contains(head, "/cut"):
			return "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nnonsense\r\n\r\n"
		case strings.Contains(head, "/lost"):
			return ""
		}
		return answer
	})
	g := routed(t, u.url(), io.Discard, nil, nil, nil)
	for _, path := range []string{"/echo", "/hints", "/cut", "/lost"} {
		for _, c := range []struct {
			method, key string
			status      string
		}{{"POST", "K" + path, ""}, {"POST", "K" + path, ""}, {"POST", "", "none"}, {"GET", "K", "ignored"}, {"GET", "", ""}} {
			a := send(t, c.method, g+path, c.key, nil, "X-Request-Id", "id-1")
			if got := a.header["X-Request-Id"]; !slices.Equal(got, []string{"id-1"}) || a.err != nil {
				t.Errorf("%s %s %s: %+v", c.method, path, c.key, a)
			}
			if got := a.header.Get("Idempotency-Status"); c.status != "" && got != c.status {
				t.Errorf("%s %s %s: Idempotency-Status %q", c.method, path, c.key, got)
			}
		}
	}
	if a := send(t, http.MethodPost, g+"/hints", strings.Repeat("x", 256), nil, "X-Request-Id", "id-2"); a.status != 400 || a.header.Get("X-Request-Id") != "id-2" {
		t.Errorf("refused: %+v", a)
	}
}
