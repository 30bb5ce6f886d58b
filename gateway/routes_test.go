package gateway_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/onceward/onceward/oncehttp"
)

// TestNoPathEvadesARoute: whatever way a path is spelled, its route's policy holds, and the service gets it as it was.
func TestNoPathEvadesARoute(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(string) string { return plainAnswer })
	strict := &oncehttp.Options{RequireKey: true}
	g := routed(t, u.url(), io.Discard, nil, map[string]*oncehttp.Options{
		"POST /pay": strict, "POST /sub/": strict, "/files/{name}": {},
	}, nil)
	for _, c := range []struct {
		path    string
		refused bool
	}{
		{"/pay", true}, {"//pay", true}, {"/./pay", true}, {"/a/../pay", true}, {"/a//..//pay", true}, {"/%2e/pay", true},
		{"/a/%2E%2e/pay", true}, {"/%70ay", true}, {"/.%2fpay", true}, {"/%2Fpay", true}, {"/../pay", true}, {"/pay?x=//", true},
		{"/sub/", true}, {"/sub/x", true}, {"//sub//x", true}, {"/sub/../sub/", true},
		{"/pay/", false}, {"/payx", false}, {"/sub", false}, {"//sub", false}, {"/sub/../x", false}, {"/files/a%2Fb", false}, {"/", false}, {"//", false},
	} {
		a := raw(t, g, "POST", c.path)
		if refused := a.status == 400 && strings.Contains(a.body, "key_missing"); refused != c.refused {
			t.Errorf("%s: refused %v: %+v", c.path, refused, a)
			continue
		}
		want := 1
		if c.refused {
			want = 0
		}
		if n := len(u.of("POST", c.path)); n != want {
			t.Errorf("%s came %d times as it was", c.path, n)
		}
	}
}

// raw sends a path as it is spelled, and returns what came, redirects too.
func raw(t *testing.T, gatewayURL, method, path string) answer {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(gatewayURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, method+" "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	return read(t, c)
}

// TestRedirectsAreTheServices: /sub is not /sub/ because a route says so; the most specific of the other routes has it.
func TestRedirectsAreTheServices(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(head string) string {
		if strings.HasPrefix(head, "POST /sub ") {
			return "HTTP/1.1 308 Permanent Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
		}
		return plainAnswer
	})
	for name, c := range map[string]struct {
		routes    map[string]*oncehttp.Options
		path      string
		status    int
		forwarded int
	}{
		"rest":            {map[string]*oncehttp.Options{"/sub/": {}}, "/sub", http.StatusPermanentRedirect, 1},
		"of a method":     {map[string]*oncehttp.Options{"POST /m/": {}}, "/m", 200, 1},
		"another subtree": {map[string]*oncehttp.Options{"/a/b/": {}, "/a/": {RequireKey: true}, "/": {}}, "/a/b", 400, 0},
		"a wildcard":      {map[string]*oncehttp.Options{"/w/": {}, "/{any}": {RequireKey: true}}, "/w", 400, 0},
		"both":            {map[string]*oncehttp.Options{"/c/": {RequireKey: true}, "/{any}/": {RequireKey: true}, "/": {}}, "/c", 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := routed(t, u.url(), io.Discard, nil, c.routes, nil)
			if a := raw(t, g, "POST", c.path); a.status != c.status {
				t.Errorf("%+v", a)
			}
			if n := len(u.of("POST", c.path)); n != c.forwarded {
				t.Errorf("came %d times", n)
			}
		})
	}
}
