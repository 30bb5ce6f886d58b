package oncehttp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

func TestCaseB007AnotherPathIsAMismatchBeforeItRuns(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		entered, release := make(chan struct{}), make(chan struct{})
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-release
			w.WriteHeader(http.StatusCreated)
		})
		first := make(chan answer, 1)
		go func() { first <- s.do(t, "POST", "/payments", "K", "x") }()
		<-entered
		if a := s.do(t, "POST", "/refunds", "K", "x"); a.status != 422 {
			t.Errorf("%+v", a)
		}
		close(release)
		<-first
		if a := s.do(t, "POST", "/payments", "K", "x"); a.status != 201 || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}

// TestCaseB009EveryWayToEnd: whatever way a handler ends, its key is never in flight for ever.
func TestCaseB009EveryWayToEnd(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f.txt")
	if err := os.WriteFile(name, []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("m"), 1<<20)
	for _, c := range []struct {
		name    string
		h       http.HandlerFunc
		replays bool
	}{
		{"writes nothing", func(http.ResponseWriter, *http.Request) {}, true},
		{"serves a file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, name) }, true},
		{"copies 1 MiB", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, bytes.NewReader(big)) }, true},
		{"panics", func(http.ResponseWriter, *http.Request) { panic("broken") }, false},
		{"leaves by Goexit", func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onEachStore(t, func(t *testing.T, store driver.Store) {
				s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 2 << 20}, c.h)
				s.Config.ErrorLog = nil
				first, err := s.try(t, "POST", "/x", "K", "x")
				if c.replays != (err == nil) {
					t.Fatalf("%+v %v", first, err)
				}
				again := s.do(t, "POST", "/x", "K", "x")
				if c.replays && (again.body != first.body || again.status != 200 || again.header.Get("Idempotent-Replayed") != "true") {
					t.Errorf("%d bytes, then %d with %d", len(first.body), len(again.body), again.status)
				}
				if !c.replays && !strings.Contains(again.body, "outcome_unknown") {
					t.Errorf("%+v", again)
				}
				s.wantRuns(t, 1)
			})
		})
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

func TestCaseB013PanicOfARepeatableRunsAgain(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		first := true
		s := siteOn(t, store, onceward.Operation{Repeatable: true}, nil, func(w http.ResponseWriter, _ *http.Request) {
			if first {
				first = false
				panic("broken")
			}
			w.WriteHeader(http.StatusCreated)
		})
		if _, err := s.try(t, "POST", "/x", "K", "x"); err == nil {
			t.Error("the panic was hidden")
		}
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 2)
	})
}

func TestCaseB017CorruptRecord(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	s := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
	s.do(t, "POST", "/x", "K", "x")
	id := driver.Identify(driver.Scope{}, "http", "K")
	snap, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	snap.Record.Result.Data = nil
	store.Put(snap.Record)
	if a := s.do(t, "POST", "/x", "K", "x"); a.status != 500 || !strings.Contains(a.body, "corrupt_record") {
		t.Errorf("%+v", a)
	}
	s.wantRuns(t, 1)
}

// TestCaseB020EveryStatus: a replay has the first status, from disk too.
func TestCaseB020EveryStatus(t *testing.T) {
	t.Parallel()
	statuses := []int{200, 201, 202, 204, 207, 226, 299, 301, 303, 304, 400, 402, 404, 409, 410, 418, 422, 451, 501, 505}
	path := filepath.Join(t.TempDir(), "o.db")
	h := func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.URL.Query().Get("status"), &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "body")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(s *site, status int) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", fmt.Sprintf("%s/x?status=%d", s.URL, status), strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", fmt.Sprint("K", status))
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	first := siteOn(t, lite(t, path), onceward.Operation{}, nil, h)
	bodies := map[int]string{}
	for _, status := range statuses {
		got, body := ask(first, status)
		if got != status {
			t.Fatalf("%d came as %d", status, got)
		}
		bodies[status] = body
	}
	first.wantRuns(t, int64(len(statuses)))
	second := siteOn(t, lite(t, path), onceward.Operation{}, nil, h)
	for _, s := range []*site{first, second} {
		for _, status := range statuses {
			if got, body := ask(s, status); got != status || body != bodies[status] {
				t.Errorf("%d %q was replayed as %d %q", status, bodies[status], got, body)
			}
		}
	}
	second.wantRuns(t, 0)
}

// TestCaseB022LargeBodyIsNeverCut: the first client gets it whole, duplicates are told that it is done.
func TestCaseB022LargeBodyIsNeverCut(t *testing.T) {
	t.Parallel()
	body := "123456789\xe8\xb4\xad"
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 10}, respond(201, body))
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 || a.body != body {
			t.Fatalf("%+v", a)
		}
		a := s.do(t, "POST", "/x", "K", "x")
		if a.status != 201 || !strings.Contains(a.body, "result_not_kept") || a.header.Get("Content-Type") != "application/problem+json" {
			t.Fatalf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}

func gzipped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(rec.Code)
		zw := gzip.NewWriter(w)
		_, _ = zw.Write(rec.Body.Bytes())
		_ = zw.Close()
	})
}

// TestCaseB024CodingFitsTheClient: never bytes that a client did not say it can read, in either order of the chain.
func TestCaseB024CodingFitsTheClient(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		g, _ := onceward.New(store, &onceward.Options{SingleTenant: true})
		for i, order := range []string{"gzip outside", "gzip inside"} {
			op, err := g.Define(onceward.Operation{Name: fmt.Sprint("op", i)})
			if err != nil {
				t.Fatal(err)
			}
			once, _ := oncehttp.New(op, nil)
			h := gzipped(once(respond(200, "hello")))
			if order == "gzip inside" {
				h = once(gzipped(respond(200, "hello")))
			}
			srv := httptest.NewServer(h)
			for _, accept := range []string{"gzip", "gzip, br", "identity", "gzip;q=0", "br"} {
				r, _ := http.NewRequestWithContext(t.Context(), "POST", srv.URL, strings.NewReader("x"))
				r.Header.Set("Idempotency-Key", "K")
				r.Header.Set("Accept-Encoding", accept)
				resp, err := (&http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				coded := resp.Header.Get("Content-Encoding") == "gzip"
				if coded {
					zr, err := gzip.NewReader(bytes.NewReader(b))
					if err != nil {
						t.Fatalf("%s, %s: %v", order, accept, err)
					}
					b, _ = io.ReadAll(zr)
				}
				if string(b) != "hello" || coded && (accept == "identity" || accept == "br") {
					t.Errorf("%s, %s: %q coded %v", order, accept, b, coded)
				}
				if cl := resp.Header.Get("Content-Length"); !coded && cl != "" && cl != "5" {
					t.Errorf("%s, %s: length %s", order, accept, cl)
				}
			}
			srv.Close()
		}
	})
}

func TestCaseB026TypeIsExact(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/none" {
				w.Header()["Content-Type"] = nil
			} else {
				w.Header().Set("Content-Type", "text/csv; charset=iso-8859-1")
			}
			_, _ = io.WriteString(w, "<html>")
		})
		for _, path := range []string{"/csv", "/none"} {
			first, again := s.do(t, "POST", path, path, "x"), s.do(t, "POST", path, path, "x")
			_, has := again.header["Content-Type"]
			if first.header.Get("Content-Type") != again.header.Get("Content-Type") || path == "/none" && has {
				t.Errorf("%s: %v then %v", path, first.header["Content-Type"], again.header["Content-Type"])
			}
		}
	})
}

// TestCaseB028NoBodyWhereNoneBelongs: 103 passes, 204 stays empty, and the connection stays readable.
func TestCaseB028NoBodyWhereNoneBelongs(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
			if _, err := w.Write([]byte("abc")); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("write: %v", err)
			}
			w.WriteHeader(http.StatusTeapot)
		})
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		br := bufio.NewReader(c)
		for i := range 3 {
			_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x\r\nIdempotency-Key: K\r\nContent-Length: 1\r\n\r\nx")
			for {
				resp, err := http.ReadResponse(br, &http.Request{Method: "POST"}) //nolint:bodyclose // the connection is read on
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				if resp.StatusCode == http.StatusEarlyHints {
					continue
				}
				b, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != 204 || len(b) != 0 || resp.Header.Get("Content-Length") != "" {
					t.Fatalf("answer %d: %d %q %v", i, resp.StatusCode, b, resp.Header)
				}
				break
			}
		}
		s.wantRuns(t, 1)
		if a := s.do(t, "HEAD", "/x", "H", ""); a.header.Get("Idempotency-Status") != "ignored" {
			t.Errorf("a keyed HEAD is not claimed: %+v", a)
		}
	})
}

func TestCaseB031NoSharedScope(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{Scope: func(r *http.Request) (onceward.Scope, error) {
			switch who := r.Header.Get("X-User"); who {
			case "error":
				return onceward.Scope{Caller: "x"}, errors.New("no session")
			case "panic":
				panic("extractor")
			default:
				return onceward.Scope{Caller: who}, nil
			}
		}}, respond(201, "paid"))
		for _, who := range []string{"", "error", "panic"} {
			if a := s.do(t, "POST", "/x", "K", "x", "X-User", who); a.status != 400 || !strings.Contains(a.body, "scope_missing") {
				t.Errorf("%q: %+v", who, a)
			}
		}
		s.wantRuns(t, 0)
		if a := s.do(t, "POST", "/x", "K", "x", "X-User", "anonymous"); a.status != 201 {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
	g, _ := onceward.New(memstore.New(nil), nil)
	op, _ := g.Define(onceward.Operation{Name: "x"})
	if _, err := oncehttp.New(op, nil); err == nil {
		t.Error("a middleware without a scope was made")
	}
}

// TestCaseB033CookiesAreNotKept: neither replayed nor at rest.
func TestCaseB033CookiesAreNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := siteOn(t, lite(t, filepath.Join(dir, "o.db")), onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Set-Cookie", "Set-Cookie2", "Authentication-Info", "Www-Authenticate", "Proxy-Authenticate", "X-Ratelimit-Remaining"} {
			w.Header().Set(name, "sid=SECRET-MARK")
		}
		w.WriteHeader(http.StatusCreated)
	})
	if a := s.do(t, "POST", "/x", "K", "x"); a.header.Get("Set-Cookie") == "" {
		t.Errorf("the first client gets its cookie: %+v", a)
	}
	again := s.do(t, "POST", "/x", "K", "x")
	for name, values := range again.header {
		if strings.Contains(strings.Join(values, " "), "SECRET-MARK") {
			t.Errorf("%s was replayed", name)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("SECRET-MARK")) {
			t.Errorf("%s holds it (%v)", f, err)
		}
	}
}

func TestCaseB036JSONMeansItsValue(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
		for i, c := range []struct {
			body string
			want int
		}{
			{`{"a":1,"b":[1,2]}`, 201}, {`{"b":[1,2], "a":1}`, 201}, {`{"a":1.0,"b":[1,2e0]}`, 201},
			{`{"a":1,"b":[2,1]}`, 422}, {`{"a":"\u0041","b":[1,2]}`, 422}, {`{"a":1,"a":1}`, 422}, {``, 422},
		} {
			if a := s.do(t, "POST", "/x", "K", c.body, "Content-Type", "application/json; charset=utf-8"); a.status != c.want {
				t.Errorf("%d %s: %d, want %d", i, c.body, a.status, c.want)
			}
		}
		s.wantRuns(t, 1)
	})
}

func TestCaseB038NoKeyIsNoKey(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	rows := func() int {
		page, err := store.Scan(t.Context(), driver.Scan{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Snapshots)
	}
	optional := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
	for range 2 {
		if a := optional.do(t, "POST", "/x", "", "x"); a.status != 201 || a.header.Get("Idempotency-Status") != "none" {
			t.Errorf("%+v", a)
		}
	}
	optional.wantRuns(t, 2)
	if n := rows(); n != 0 {
		t.Errorf("%d records of requests without a key", n)
	}
	required := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{RequireKey: true, Keys: []oncehttp.KeySource{oncehttp.FromJSON("/request_id")}}, respond(201, "paid"))
	for _, body := range []string{`{}`, `{"request_id":null}`, `{"request_id":""}`, `{"request_id":{"a":1}}`, `{"request_id":[1]}`, `{"request_id":true}`, `nonsense`, ``} {
		if a := required.do(t, "POST", "/x", "", body, "Content-Type", "application/json"); a.status != 400 || !strings.Contains(a.body, "key_missing") {
			t.Errorf("%s: %+v", body, a)
		}
	}
	required.wantRuns(t, 0)
	for range 2 {
		if a := required.do(t, "POST", "/x", "", `{"request_id":"r1","p":1}`, "Content-Type", "application/json"); a.status != 201 {
			t.Errorf("%+v", a)
		}
	}
	required.wantRuns(t, 1)
}

// TestCaseB040OddKeys: raw requests, as no client of ours would send them.
func TestCaseB040OddKeys(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{RequireKey: true}, respond(201, "paid"))
		raw := func(lines string) int {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+lines+"Content-Length: 1\r\n\r\nx")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%q: %v", lines, err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		k := func(v string) string { return "Idempotency-Key: " + v + "\r\n" }
		for lines, want := range map[string]int{
			k(""): 400, k("   \t"): 400, k("a") + k("b"): 400, k("a") + k("a"): 400, k("\u00e9"): 400, k("e\u0301"): 400,
			k("a b"): 201, k(strings.Repeat("{", 255)): 201, k(strings.Repeat("{", 256)): 400, k("../../x"): 201, k("k\x7f"): 400,
			k(`"abc`): 400, k(`"a", "b"`): 400, k("a,b"): 400, k(`"a,b"`): 201, k(`"a\"b"`): 201, k(`"q";p=1`): 201,
			"Idempotency-Key: x1\r\nX-Idempotency-Key: x2\r\n": 400, "Idempotency-Key: x3\r\nX-Idempotency-Key: x3\r\n": 201,
		} {
			if got := raw(lines); got != want {
				t.Errorf("%q: %d, want %d", lines, got, want)
			}
		}
		s.wantRuns(t, 7)
	})
}

func TestCaseB042WhatDoesNotCount(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{LeaveOut: []string{"json:/id", "query:ts"}}, respond(201, "paid"))
		for _, c := range []struct {
			path, body string
			want       int
		}{
			{"/x?a=1&b=2&ts=1", `{"id":1,"p":5}`, 201}, {"/x?b=2&a=1&ts=9", `{"id":2,"p":5}`, 201},
			{"/x?a=1&b=2", `{"id":3,"p":6}`, 422}, {"/x?a=1&b=3", `{"id":1,"p":5}`, 422},
		} {
			if a := s.do(t, "POST", c.path, "K", c.body, "Content-Type", "application/json"); a.status != c.want {
				t.Errorf("%s %s: %d, want %d", c.path, c.body, a.status, c.want)
			}
		}
		s.wantRuns(t, 1)
	})
}

func TestCaseB043QuotedAndBareAreOneKey(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
		for _, k := range []string{"abc", `"abc"`, `"abc";v=1`} {
			if a := s.do(t, "POST", "/x", k, "x"); a.status != 201 {
				t.Errorf("%s: %+v", k, a)
			}
		}
		s.wantRuns(t, 1)
	})
}

// TestCaseB044WhatFreesTheKey: an answer that says nothing was executed is passed on and not remembered.
func TestCaseB044WhatFreesTheKey(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 407, 408, 421, 425, 429, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			onEachStore(t, func(t *testing.T, store driver.Store) {
				n := 0
				s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
					if n++; n == 1 {
						w.Header().Set("Retry-After", "1")
						w.WriteHeader(status)
						return
					}
					w.WriteHeader(http.StatusCreated)
				})
				if a := s.do(t, "POST", "/x", "K", "x"); a.status != status || a.header.Get("Retry-After") != "1" {
					t.Errorf("%+v", a)
				}
				for range 2 {
					if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 {
						t.Errorf("%+v", a)
					}
				}
				s.wantRuns(t, 2)
			})
		})
	}
}

// TestCaseB049ServerErrors: a 5xx tells nothing, unless repeating is safe or somebody says what it means.
func TestCaseB049ServerErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		o      onceward.Operation
		opts   *oncehttp.Options
		header string
		status int // of the second
		runs   int64
	}{
		{"unknown", onceward.Operation{}, nil, "", 409, 1},
		{"repeatable", onceward.Operation{Repeatable: true}, nil, "", 500, 2},
		{"the route says final", onceward.Operation{}, &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{500: oncehttp.Final}}, "", 500, 1},
		{"the route says not done", onceward.Operation{}, &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{500: oncehttp.NotDone}}, "", 500, 2},
		{"the handler says done", onceward.Operation{}, nil, "done", 500, 1},
		{"the handler says not done", onceward.Operation{}, nil, "not-done", 500, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onEachStore(t, func(t *testing.T, store driver.Store) {
				s := siteOn(t, store, c.o, c.opts, func(w http.ResponseWriter, _ *http.Request) {
					if c.header != "" {
						w.Header().Set("Onceward-Outcome", c.header)
					}
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, "own words")
				})
				first := s.do(t, "POST", "/x", "K", "x")
				if first.status != 500 || first.body != "own words" || first.header.Get("Onceward-Outcome") != "" {
					t.Errorf("the first caller gets the handler's own answer: %+v", first)
				}
				if c.name == "unknown" && first.header.Get("Idempotency-Status") != "unknown" {
					t.Errorf("%+v", first)
				}
				if a := s.do(t, "POST", "/x", "K", "x"); a.status != c.status {
					t.Errorf("%+v", a)
				}
				s.wantRuns(t, c.runs)
			})
		})
	}
}

func TestCaseB046And048FinalAnswers(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, nil, respond(409, "slot taken"))
		first, again := s.do(t, "POST", "/x", "K", `{"otp":0}`), s.do(t, "POST", "/x", "K", `{"otp":0}`)
		if first.status != 409 || again.body != "slot taken" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%+v %+v", first, again)
		}
		if a := s.do(t, "POST", "/x", "K", `{"otp":1}`); a.status != 422 {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}

// TestCaseB126AbortIsPassedOn: the same panic value reaches the outside, and the record is not complete.
func TestCaseB126AbortIsPassedOn(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		g, _ := onceward.New(store, &onceward.Options{SingleTenant: true})
		op, _ := g.Define(onceward.Operation{Name: "http"})
		once, _ := oncehttp.New(op, nil)
		h := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "x")
			panic(http.ErrAbortHandler)
		}))
		r := httptest.NewRequest("POST", "/x", strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", "K")
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Errorf("outside came %v", p)
				}
			}()
			h.ServeHTTP(w, r)
		}()
		if w.Body.Len() != 0 {
			t.Errorf("%q left before it was recorded", w.Body)
		}
		snap, err := store.Get(t.Context(), driver.Identify(driver.Scope{}, "http", "K"))
		if err != nil || snap.Record.Failure != driver.Unknown {
			t.Errorf("%+v %v", snap.Record, err)
		}
	})
}

// TestCaseB128BodyLimit: 413 before anything runs, whatever the framing, and never a shortened body.
func TestCaseB128BodyLimit(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		budget := oncehttp.NewBudget(64 << 20)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{Budget: budget}, func(w http.ResponseWriter, r *http.Request) {
			h := sha256.New()
			_, _ = io.Copy(h, r.Body)
			_, _ = fmt.Fprintf(w, "%x", h.Sum(nil))
		})
		full := bytes.Repeat([]byte{0xa5}, 1<<20)
		post := func(k string, body io.Reader) (int, string) {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/x", body)
			r.Header.Set("Idempotency-Key", k)
			r.Header.Set("Expect", "100-continue")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			b, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(b)
		}
		if status, body := post("a", bytes.NewReader(full)); status != 200 || body != fmt.Sprintf("%x", sha256.Sum256(full)) {
			t.Errorf("1 MiB: %d %s", status, body)
		}
		s.wantRuns(t, 1)
		over := append(bytes.Clone(full), 1)
		if status, body := post("b", bytes.NewReader(over)); status != 413 || !strings.Contains(body, "body_too_large") {
			t.Errorf("one byte more: %d %s", status, body)
		}
		if status, _ := post("c", io.MultiReader(bytes.NewReader(over))); status != 413 {
			t.Errorf("one byte more, chunked: %d", status)
		}
		s.wantRuns(t, 1)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				status, _ := post(fmt.Sprint("p", i), bytes.NewReader(full))
				if status != 200 && status != 503 {
					t.Errorf("%d", status)
				}
				if held := budget.Held(); held > 64<<20 {
					t.Errorf("%d bytes were held", held)
				}
			})
		}
		wg.Wait()
		s.Close()
		if held := budget.Held(); held != 0 {
			t.Errorf("%d bytes are held by nobody", held)
		}
	})
}

// TestCaseB131Streams: recorded under the limit; above it the first client gets all and duplicates are told.
func TestCaseB131Streams(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 64}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			n := 3
			if r.URL.Path == "/long" {
				n = 30
			}
			for i := range n {
				_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
			}
		})
		first, again := s.do(t, "POST", "/short", "S", "x"), s.do(t, "POST", "/short", "S", "x")
		if first.body != "data: 0\n\ndata: 1\n\ndata: 2\n\n" || again.body != first.body || again.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%+v %+v", first, again)
		}
		if a := s.do(t, "POST", "/long", "L", "x"); strings.Count(a.body, "data:") != 30 {
			t.Errorf("%+v", a)
		}
		if a := s.do(t, "POST", "/long", "L", "x"); a.status != 200 || !strings.Contains(a.body, "result_not_kept") {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 2)
	})
}

// TestCaseB132TimeoutHandler: inside the middleware its 503 tells nothing; outside, the late answer is replayed.
func TestCaseB132TimeoutHandler(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store driver.Store) {
		g, _ := onceward.New(store, &onceward.Options{SingleTenant: true})
		for i, inside := range []bool{true, false} {
			op, _ := g.Define(onceward.Operation{Name: fmt.Sprint("op", i), OnInFlight: onceward.Wait(time.Minute)})
			once, _ := oncehttp.New(op, nil)
			var runs atomic.Int64
			release := make(chan struct{})
			slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs.Add(1)
				<-release
				w.WriteHeader(http.StatusCreated)
			})
			h := http.TimeoutHandler(once(slow), 20*time.Millisecond, "too slow")
			if inside {
				h = once(http.TimeoutHandler(slow, 20*time.Millisecond, "too slow"))
			}
			ask := func() *httptest.ResponseRecorder {
				r := httptest.NewRequest("POST", "/x", strings.NewReader("x"))
				r.Header.Set("Idempotency-Key", "K")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			if w := ask(); w.Code != 503 || w.Body.String() != "too slow" {
				t.Errorf("inside %v: %d %s", inside, w.Code, w.Body)
			}
			close(release)
			if inside {
				if w := ask(); w.Code != 409 || !strings.Contains(w.Body.String(), "outcome_unknown") {
					t.Errorf("inside: %d %s", w.Code, w.Body)
				}
			} else {
				for w := ask(); w.Code != 201; w = ask() {
					if w.Code != 503 {
						t.Fatalf("outside: %d %s", w.Code, w.Body)
					}
				}
			}
			if runs.Load() != 1 {
				t.Errorf("inside %v: ran %d times", inside, runs.Load())
			}
		}
	})
}

func TestOriginIsForItsOriginAlone(t *testing.T) {
	t.Parallel()
	s := siteOn(t, memstore.New(nil), onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.WriteHeader(http.StatusCreated)
	})
	s.do(t, "POST", "/x", "K", "x", "Origin", "https://a.example")
	if a := s.do(t, "POST", "/x", "K", "x", "Origin", "https://a.example"); a.header.Get("Access-Control-Allow-Origin") != "https://a.example" {
		t.Errorf("%+v", a)
	}
	if a := s.do(t, "POST", "/x", "K", "x", "Origin", "https://b.example"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%+v", a)
	}
}

// TestEveryCodeHasAStatus: the table is exhaustive.
func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	want := map[onceward.Code]int{
		"key_missing": 400, "key_invalid": 400, "scope_missing": 400, "in_flight": 409, "superseded": 409, "outcome_unknown": 409,
		"duplicate": 409, "key_expired": 412, "body_too_large": 413, "mismatch": 422, "too_many": 429, "store_unavailable": 503,
		"store_full": 503, "upstream_unreachable": 503, "corrupt_record": 500, "result_not_kept": 0,
	}
	for _, c := range onceward.Codes() {
		if status, ok := want[c]; !ok || oncehttp.StatusOf(c) != status {
			t.Errorf("%s: %d", c, oncehttp.StatusOf(c))
		}
		delete(want, c)
	}
	if len(want) != 0 {
		t.Errorf("no code: %v", want)
	}
}

// failing refuses a call of the store while it is told to.
type failing struct {
	driver.Store
	mu     sync.Mutex
	claims bool
	ends   bool
}

func (f *failing) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claims {
		return driver.Claimed{}, errors.New("store away")
	}
	return f.Store.Claim(ctx, c)
}

func (f *failing) Finish(ctx context.Context, e driver.Finish) (driver.Finished, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends {
		return driver.Finished{}, errors.New("store away")
	}
	return f.Store.Finish(ctx, e)
}

func TestStoreDownAndUnrecorded(t *testing.T) {
	t.Parallel()
	store := &failing{Store: memstore.New(nil), ends: true}
	g, _ := onceward.New(store, &onceward.Options{SingleTenant: true, StoreTimeout: 50 * time.Millisecond, FinishGrace: 50 * time.Millisecond})
	closed, _ := g.Define(onceward.Operation{Name: "closed"})
	open, err := g.Define(onceward.Operation{Name: "open", OnStoreDown: onceward.Open, Repeatable: true})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(op *onceward.Op, k string) *httptest.ResponseRecorder {
		once, _ := oncehttp.New(op, nil)
		r := httptest.NewRequest("POST", "/x", strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", k)
		w := httptest.NewRecorder()
		once(respond(201, "paid")).ServeHTTP(w, r)
		return w
	}
	if w := ask(closed, "K"); w.Code != 201 || w.Header().Get("Idempotency-Status") != "unrecorded" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(closed, "K"); w.Code != 409 || w.Header().Get("Idempotency-Status") != "in_flight" {
		t.Errorf("meanwhile: %d %v", w.Code, w.Header())
	}
	store.mu.Lock()
	store.ends = false
	store.mu.Unlock()
	for w := ask(closed, "K"); w.Header().Get("Idempotent-Replayed") != "true"; w = ask(closed, "K") {
		if w.Code != 409 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		runtime.Gosched()
	}
	store.mu.Lock()
	store.claims = true
	store.mu.Unlock()
	if w := ask(closed, "other"); w.Code != 503 || !strings.Contains(w.Body.String(), "store_unavailable") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(open, "other"); w.Code != 201 || w.Header().Get("Idempotency-Status") != "bypassed" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _ = g.Close(ctx)
}
