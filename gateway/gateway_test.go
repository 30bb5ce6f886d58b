package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newGateway serves a gateway in front of upstream.
func newGateway(t *testing.T, upstream string, o onceward.Operation, opts *oncehttp.Options, routes ...gateway.Route) string {
	t.Helper()
	g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: opts == nil || opts.Scope == nil})
	if err != nil {
		t.Fatal(err)
	}
	if o.Name == "" {
		o.Name = "http"
	}
	op, err := g.Define(o)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	h, err := gateway.New(&gateway.Options{
		Upstream: u, Default: gateway.Route{Op: op, HTTP: opts}, Routes: routes,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return srv.URL
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func send(t *testing.T, method, target, key string, body io.Reader, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	r.GetBody = nil
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}).Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

// rawUpstream speaks HTTP/1.1 by hand: it keeps connections, answers GET, and treats each POST as the mode says.
type rawUpstream struct {
	net.Listener
	hits  atomic.Int64
	conns sync.WaitGroup
	mode  string // close, cut, paid, once
}

func newRawUpstream(t *testing.T, mode string) *rawUpstream {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &rawUpstream{Listener: l, mode: mode}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.conns.Go(func() { u.serve(c) })
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return u
}

func (u *rawUpstream) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwarm")
			continue
		}
		u.hits.Add(1)
		switch u.mode {
		case "close":
			return
		case "cut":
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npartial")
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\npaid")
		if u.mode == "once" {
			return
		}
	}
}

func (u *rawUpstream) url() string { return "http://" + u.Addr().String() }

// TestCaseB124NoResendByTransport: a kept connection that dies on a keyed POST must not make net/http send it again.
func TestCaseB124NoResendByTransport(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"empty body": "", "with body": "x=1"} {
		for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
			t.Run(name+" "+header, func(t *testing.T) {
				t.Parallel()
				u := newRawUpstream(t, "close")
				g := newGateway(t, u.url(), onceward.Operation{}, nil)
				if a := send(t, "GET", g+"/warm", "", nil); a.body != "warm" {
					t.Fatalf("%+v", a)
				}
				for range 2 {
					a := send(t, "POST", g+"/pay", "", strings.NewReader(body), header, "K")
					if a.err != nil || !strings.Contains(a.body, "outcome_unknown") || a.header.Get("Idempotency-Status") != "unknown" {
						t.Fatalf("%+v", a)
					}
				}
				if n := u.hits.Load(); n != 1 {
					t.Fatalf("the upstream was hit %d times", n)
				}
			})
		}
	}
}

func TestCutAnswerIsNeverComplete(t *testing.T) {
	t.Parallel()
	u := newRawUpstream(t, "cut")
	g := newGateway(t, u.url(), onceward.Operation{}, nil)
	if a := send(t, "POST", g+"/pay", "K", strings.NewReader("x")); a.err == nil && a.status < 500 {
		t.Fatalf("a cut answer looked whole: %+v", a)
	}
	if a := send(t, "POST", g+"/pay", "K", strings.NewReader("x")); a.status != 409 || !strings.Contains(a.body, "outcome_unknown") {
		t.Fatalf("%+v", a)
	}
	if n := u.hits.Load(); n != 1 {
		t.Fatalf("the upstream was hit %d times", n)
	}
}

// TestDyingConnections: the upstream closes each kept connection after one answer. Whether the next request met a
// closed connection before or after its first byte, no key may reach the upstream twice.
func TestDyingConnections(t *testing.T) {
	t.Parallel()
	u := newRawUpstream(t, "once")
	g := newGateway(t, u.url(), onceward.Operation{}, nil)
	paid := int64(0)
	for i := range 100 {
		switch a := send(t, "POST", g+"/pay", "k"+strconv.Itoa(i), strings.NewReader("x")); {
		case a.status == 201 && a.body == "paid":
			paid++
		case a.status == 502 && strings.Contains(a.body, "outcome_unknown"):
		default:
			t.Fatalf("%+v", a)
		}
	}
	if n := u.hits.Load(); n != paid || paid == 0 {
		t.Fatalf("the upstream was hit %d times and %d were answered", n, paid)
	}
}

func TestNothingSentFreesTheKey(t *testing.T) {
	t.Parallel()
	u := newRawUpstream(t, "paid")
	address := u.Addr().String()
	_ = u.Close()
	// Whatever a route says of a 503: this one is ours, and nothing was sent.
	g := newGateway(t, "http://"+address, onceward.Operation{}, &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{503: oncehttp.Final}})
	a := send(t, "POST", g+"/pay", "K", strings.NewReader("x"))
	if a.status != 503 || !strings.Contains(a.body, "upstream_unreachable") || a.header.Get("Retry-After") == "" {
		t.Fatalf("%+v", a)
	}
	back, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})}
	go func() { _ = srv.Serve(back) }()
	t.Cleanup(func() { _ = srv.Close() })
	if a := send(t, "POST", g+"/pay", "K", strings.NewReader("x")); a.status != 200 || a.body != "x" {
		t.Fatalf("the same key after the upstream came back: %+v", a)
	}
}

func upstreamFunc(t *testing.T, h http.HandlerFunc) (string, *atomic.Int64) {
	t.Helper()
	var runs atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, &runs
}

func TestStormReachesUpstreamOnce(t *testing.T) {
	t.Parallel()
	up, runs := upstreamFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	})
	g := newGateway(t, up, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)}, nil)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			a := send(t, "POST", g+"/pay", "K", strings.NewReader("x"))
			if a.status == 409 && strings.Contains(a.body, "in_flight") {
				return // above 64 waiters of one key
			}
			if a.status != 201 || a.body != "paid" {
				t.Errorf("%+v", a)
			}
		})
	}
	wg.Wait()
	if n := runs.Load(); n != 1 {
		t.Fatalf("the upstream ran %d times", n)
	}
}

func TestBodyArrivesWhole(t *testing.T) {
	t.Parallel()
	up, _ := upstreamFunc(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		_, _ = io.Copy(h, r.Body)
		_, _ = io.WriteString(w, hex.EncodeToString(h.Sum(nil)))
	})
	g := newGateway(t, up, onceward.Operation{}, nil)
	body := make([]byte, 1<<20)
	_, _ = rand.Read(body)
	want := sha256.Sum256(body)
	for name, reader := range map[string]io.Reader{"length": bytes.NewReader(body), "chunked": io.MultiReader(bytes.NewReader(body))} {
		if a := send(t, "POST", g+"/pay", name, reader); a.body != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// TestCaseB027CodingPassesAsItIs: the proxy must not decode and keep the headers.
func TestCaseB027CodingPassesAsItIs(t *testing.T) {
	t.Parallel()
	up, _ := upstreamFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = io.WriteString(zw, "hello")
		_ = zw.Close()
	})
	g := newGateway(t, up, onceward.Operation{}, nil)
	if a := send(t, "POST", g+"/pay", "asks for nothing", strings.NewReader("x")); a.header.Get("Content-Encoding") != "gzip" || a.body == "hello" {
		t.Fatalf("the proxy decoded: %+v", a)
	}
	for range 2 {
		a := send(t, "POST", g+"/pay", "K", strings.NewReader("x"), "Accept-Encoding", "gzip")
		zr, err := gzip.NewReader(strings.NewReader(a.body))
		if err != nil || a.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%+v %v", a, err)
		}
		if b, err := io.ReadAll(zr); err != nil || string(b) != "hello" {
			t.Fatalf("%q %v", b, err)
		}
	}
	if a := send(t, "POST", g+"/pay", "K", strings.NewReader("x"), "Accept-Encoding", "identity"); a.body != "hello" || a.header.Get("Content-Encoding") != "" || a.header.Get("Content-Length") != "5" {
		t.Fatalf("replay to a client that can't read gzip: %+v", a)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	up, _ := upstreamFunc(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Request-Id")) })
	g := newGateway(t, up, onceward.Operation{}, nil)
	if a := send(t, "GET", g+"/", "", nil, "X-Request-Id", "abc-1"); a.body != "abc-1" || a.header.Get("X-Request-Id") != "abc-1" {
		t.Errorf("a good one is passed on: %+v", a)
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 129), `"><script>`} {
		if a := send(t, "GET", g+"/", "", nil, "X-Request-Id", bad); a.body == bad || len(a.body) != 32 {
			t.Errorf("%q: %+v", bad, a)
		}
	}
	if a := send(t, "POST", g+"/", "", strings.NewReader("x"), "X-Request-Id", "abc"); a.header.Get("Idempotency-Status") != "none" {
		t.Errorf("a request id is not a key: %+v", a)
	}
}

// TestCaseB035NobodyReservesAnothersKey: the half of the case that scopes give; limits of one caller are not built yet.
func TestCaseB035NobodyReservesAnothersKey(t *testing.T) {
	t.Parallel()
	up, runs := upstreamFunc(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Account")) })
	g := newGateway(t, up, onceward.Operation{}, &oncehttp.Options{Scope: func(r *http.Request) (onceward.Scope, error) {
		return onceward.Scope{Caller: r.Header.Get("X-Account")}, nil
	}})
	for _, who := range []string{"a", "b", "a", "b"} {
		if a := send(t, "POST", g+"/pay", "K", strings.NewReader("x"), "X-Account", who); a.body != who {
			t.Errorf("%s got %+v", who, a)
		}
	}
	if a := send(t, "POST", g+"/pay", "K", strings.NewReader("x")); a.status != 400 || !strings.Contains(a.body, "scope_missing") {
		t.Errorf("%+v", a)
	}
	if n := runs.Load(); n != 2 {
		t.Fatalf("ran %d times", n)
	}
}

func TestBadRoutesAndUpstreams(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "127.0.0.1:9000", "ftp://x", "http://"} {
		u, _ := url.Parse(text)
		if _, err := gateway.New(&gateway.Options{Upstream: u}); err == nil {
			t.Errorf("upstream %q was taken", text)
		}
	}
	for _, pattern := range []string{"POST pay", "", "POST /{"} {
		if new(gateway.Matches).Add(pattern) == nil {
			t.Errorf("pattern %q was taken", pattern)
		}
	}
	var m gateway.Matches
	if err := m.Add("POST /pay/{id}"); err != nil {
		t.Fatal(err)
	}
	if err := m.Add("POST /pay/{other}"); err == nil {
		t.Error("two patterns of the same requests were taken")
	}
}

func TestClientThatHangsUpLosesNothing(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	up, runs := upstreamFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "paid")
	})
	g := newGateway(t, up, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)}, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, g+"/pay", strings.NewReader("x"))
	r.Header.Set("Idempotency-Key", "K")
	gone := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(r) //nolint:bodyclose // there is no answer
		gone <- err
	}()
	<-entered
	hangUp()
	if err := <-gone; err == nil {
		t.Fatal("the client got an answer")
	}
	close(release)
	if a := send(t, "POST", g+"/pay", "K", strings.NewReader("x")); a.body != "paid" || a.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("%+v", a)
	}
	if n := runs.Load(); n != 1 {
		t.Fatalf("ran %d times", n)
	}
}
