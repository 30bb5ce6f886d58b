package oncehttp_test

import (
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/sqlstore"
)

// lite opens a SQLite store in path.
func lite(t *testing.T, path string) driver.Store {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(); _ = db.Close() })
	return s
}

// onEachStore runs a case on memory and on SQLite.
func onEachStore(t *testing.T, run func(t *testing.T, store driver.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { t.Parallel(); run(t, memstore.New(nil)) })
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); run(t, lite(t, filepath.Join(t.TempDir(), "o.db"))) })
}

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
