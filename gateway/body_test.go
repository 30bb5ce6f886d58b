package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/oncehttp"
)

// dial sends the beginning of a request, and no more.
func dial(t *testing.T, gatewayURL, text string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(gatewayURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// read reads one answer, and whether the connection ends behind it.
func read(t *testing.T, c net.Conn) answer {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the answer was cut: %v", err)
	}
	if resp.Close {
		_, err = in.ReadByte()
	}
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

// TestSlowBodyIsGivenUp: a client that stops in the middle of its body holds neither memory nor a connection for ever.
func TestSlowBodyIsGivenUp(t *testing.T) {
	t.Parallel()
	u := newWire(t, func(string) string { return plainAnswer })
	budget := oncehttp.NewBudget(1 << 20)
	g := routed(t, u.url(), io.Discard, &oncehttp.Options{Budget: budget}, map[string]*oncehttp.Options{"/strict": {RequireKey: true}},
		func(o *gateway.Options) { o.ReadTimeout = 100 * time.Millisecond })
	cases := map[string]struct {
		head   string
		status int
	}{
		"guarded":       {"POST /a HTTP/1.1\r\nHost: x\r\nIdempotency-Key: K\r\nContent-Length: 1000\r\n\r\nhalf", 400},
		"in chunks":     {"POST /a HTTP/1.1\r\nHost: x\r\nIdempotency-Key: K\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", 400},
		"unguarded":     {"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf", 408},
		"refused first": {"POST /strict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf", 400},
	}
	t.Run("all", func(t *testing.T) { // at the same time, and then
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if a := read(t, dial(t, g, c.head)); a.status != c.status || a.err == nil {
					t.Fatalf("%+v", a)
				}
			})
		}
	})
	if n := budget.Held(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
	if a := send(t, "POST", g+"/a", "K", strings.NewReader("x")); a.status != 200 {
		t.Errorf("the key was taken by nothing: %+v", a)
	}
}

// TestSlowServiceIsNoSlowBody: the time limit of a body ends with it.
func TestSlowServiceIsNoSlowBody(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	u := newWire(t, func(string) string {
		<-hold
		return plainAnswer
	})
	g := routed(t, u.url(), io.Discard, nil, nil, func(o *gateway.Options) { o.ReadTimeout = 50 * time.Millisecond })
	for name, head := range map[string]string{"guarded": "Idempotency-Key: K\r\n", "unguarded": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, g, "POST /"+name+" HTTP/1.1\r\nHost: x\r\n"+head+"Content-Length: 4\r\n\r\nbody")
			if name == "guarded" {
				time.AfterFunc(300*time.Millisecond, func() { close(hold) })
			}
			if a := read(t, c); a.status != 200 {
				t.Fatalf("%+v", a)
			}
			if _, err := io.WriteString(c, "POST /again HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if a := read(t, c); a.status != 200 {
				t.Fatalf("the connection was not kept: %+v", a)
			}
		})
	}
}
