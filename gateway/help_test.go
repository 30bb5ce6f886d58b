package gateway_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// routed serves a gateway with routes. Each operation is the route's pattern in letters.
func routed(t *testing.T, upstream string, log io.Writer, rest *oncehttp.Options, routes map[string]*oncehttp.Options, change func(o *gateway.Options)) string {
	t.Helper()
	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	define := func(name string, repeatable bool) *onceward.Op {
		op, err := guard.Define(onceward.Operation{Name: name, Repeatable: repeatable})
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	o := gateway.Options{Upstream: u, Default: gateway.Route{Op: define("http", false), HTTP: rest}, Logger: slog.New(slog.NewTextHandler(log, nil))}
	for match, opts := range routes {
		repeatable := strings.Contains(match, "/repeatable")
		o.Routes = append(o.Routes, gateway.Route{Match: match, Op: define("r"+strconv.Itoa(len(o.Routes)), repeatable), HTTP: opts})
	}
	if change != nil {
		change(&o)
	}
	h, err := gateway.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wire is an upstream of bytes: it tells each request's head as it came, and answers what it is told to. Nothing to answer
// closes the connection.
type wire struct {
	net.Listener
	mu     sync.Mutex
	heads  []string
	conns  []net.Conn
	answer func(head string) string
}

const plainAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func newWire(t *testing.T, answer func(head string) string) *wire {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &wire{Listener: l, answer: answer}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.conns = append(u.conns, c)
			u.mu.Unlock()
			wg.Go(func() { u.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		u.mu.Lock()
		for _, c := range u.conns {
			_ = c.Close()
		}
		u.mu.Unlock()
		wg.Wait()
	})
	return u
}

func (u *wire) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		var head strings.Builder
		for !strings.HasSuffix(head.String(), "\r\n\r\n") {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			head.WriteString(line)
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head.String())))
		if err != nil {
			return
		}
		if r.ContentLength > 0 {
			_, _ = io.CopyN(io.Discard, in, r.ContentLength)
		}
		u.mu.Lock()
		u.heads = append(u.heads, head.String())
		u.mu.Unlock()
		answer := u.answer(head.String())
		_, _ = io.WriteString(c, answer)
		if answer == "" {
			return
		}
	}
}

func (u *wire) url() string { return "http://" + u.Addr().String() }

// of returns the heads of the requests of a method and path.
func (u *wire) of(method, path string) (list []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, head := range u.heads {
		if strings.HasPrefix(head, method+" "+path+" ") {
			list = append(list, head)
		}
	}
	return list
}

// field returns the lines of a header, whatever its spelling.
func field(head, name string) (values []string) {
	for line := range strings.SplitSeq(head, "\r\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}
