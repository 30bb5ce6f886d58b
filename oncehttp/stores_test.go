package oncehttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
	s.Server = httptest.NewServer(once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		h(w, r)
	})))
	t.Cleanup(s.Close)
	return s
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
