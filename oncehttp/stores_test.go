package oncehttp_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/oncehttp"
)

func siteOn(t *testing.T, store driver.Store, o onceward.Operation, opts *oncehttp.Options, h http.HandlerFunc) *site {
	t.Helper()
	g, err := onceward.New(store, &onceward.Options{SingleTenant: opts == nil || opts.Scope == nil})
	if err != nil {
		t.Fatal(err)
	}
	o.Name = "http"
	op, err := g.Define(o)
	if err != nil {
		t.Fatal(err)
	}
	once, err := oncehttp.New(op, opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{op: op}
	served, _ := logged(t, once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		h(w, r)
	})))
	s.Server = served.Server
	return s
}

// logged serves a handler on a server whose log can be read.
func logged(t *testing.T, h http.Handler) (*site, *logText) {
	t.Helper()
	text := &logText{}
	s := &site{Server: httptest.NewUnstartedServer(h)}
	s.Config.ErrorLog = log.New(text, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s, text
}

// logText is what was logged.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// try is do for an answer that may not come.
func (s *site) try(t *testing.T, method, path, key, body string) (answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}
