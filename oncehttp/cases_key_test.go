package oncehttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

func TestCaseB031NoSharedScope(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{Logger: slog.New(slog.DiscardHandler), Scope: func(r *http.Request) (onceward.Scope, error) {
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

func TestCaseB036JSONMeansItsValue(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
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
		// A name that stands twice has no one meaning: the bytes count.
		for _, c := range []struct {
			body string
			want int
		}{{`{"a":1,"a":1}`, 201}, {`{"a":1,"a":1}`, 201}, {`{"a":1, "a":1}`, 422}, {`{"a":1}`, 422}} {
			if a := s.do(t, "POST", "/x", "twice", c.body, "Content-Type", "application/json"); a.status != c.want {
				t.Errorf("%s: %d, want %d", c.body, a.status, c.want)
			}
		}
		s.wantRuns(t, 2)
	})
}

// TestCaseB038NoKeyIsNoKey: without one every request runs where that is allowed, and none where it is not; neither leaves
// a row. A body's key that is null, missing, empty or of another type is no key.
func TestCaseB038NoKeyIsNoKey(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		wantRows := func(want int) {
			t.Helper()
			page, err := store.(driver.Sweeper).Scan(t.Context(), driver.Scan{Limit: 100})
			if err != nil || len(page.Snapshots) != want {
				t.Errorf("%d records, want %d: %v", len(page.Snapshots), want, err)
			}
		}
		optional := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
		for range 2 {
			if a := optional.do(t, "POST", "/x", "", "x"); a.status != 201 || a.header.Get("Idempotency-Status") != "none" || a.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%+v", a)
			}
		}
		optional.wantRuns(t, 2)
		wantRows(0)
		required := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{RequireKey: true}, respond(201, "paid"))
		if a := required.do(t, "POST", "/x", "", "x"); a.status != 400 || !strings.Contains(a.body, "key_missing") {
			t.Errorf("%+v", a)
		}
		required.wantRuns(t, 0)
		wantRows(0)
		keys := []oncehttp.KeySource{oncehttp.FromJSON("/request_id")}
		inBody := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{RequireKey: true, Keys: keys}, respond(201, "paid"))
		maybe := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{Keys: keys}, respond(201, "paid"))
		none := []string{
			`{}`, `{"request_id":null}`, `{"request_id":""}`, `{"request_id":{"a":1}}`, `{"request_id":[1]}`, `{"request_id":true}`, `{"request_id":1.5}`, `nonsense`, ``,
		}
		for _, body := range none {
			if a := inBody.do(t, "POST", "/x", "", body, "Content-Type", "application/json"); a.status != 400 || !strings.Contains(a.body, "key_missing") {
				t.Errorf("%s: %+v", body, a)
			}
			if a := maybe.do(t, "POST", "/x", "", body, "Content-Type", "application/json"); a.status != 201 || a.header.Get("Idempotency-Status") != "none" {
				t.Errorf("%s: %+v", body, a)
			}
		}
		inBody.wantRuns(t, 0)
		maybe.wantRuns(t, int64(len(none)))
		wantRows(0)
		for range 2 {
			if a := inBody.do(t, "POST", "/x", "", `{"request_id":"r1","p":1}`, "Content-Type", "application/json"); a.status != 201 {
				t.Errorf("%+v", a)
			}
		}
		inBody.wantRuns(t, 1)
		wantRows(1)
	})
}

// TestCaseB040OddKeys: raw requests, as no client of ours would send them. What is no key is a 400, what is one is its own
// record, and no log shows a key, or a raw control byte.
func TestCaseB040OddKeys(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		slogged := &logText{}
		log := slog.New(slog.NewTextHandler(slogged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		store := faultstore.New(stores.Open(t))
		g, err := onceward.New(store, &onceward.Options{Logger: log, StoreTimeout: time.Second, FinishGrace: 500 * time.Millisecond, Observer: func(e onceward.Event) {
			log.Debug("event", "outcome", e.Outcome, "key", e.Key, "error", e.Err)
		}})
		if err != nil {
			t.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "http"})
		if err != nil {
			t.Fatal(err)
		}
		once, err := oncehttp.New(op, &oncehttp.Options{RequireKey: true, Logger: log, Scope: func(r *http.Request) (onceward.Scope, error) {
			if who := r.Header.Get("X-User"); who != "" {
				return onceward.Scope{}, errors.New("no such user: " + who)
			}
			return onceward.Scope{Caller: "ann"}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		var runs atomic.Int64
		s, served := logged(t, once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			if r.URL.Path == "/panic" {
				panic("broken")
			}
			respond(201, "paid")(w, r)
		})))
		raw := func(path, lines string) int {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+lines+"Content-Length: 1\r\n\r\nx")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return 0
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		k := func(v string) string { return "Idempotency-Key: " + v + "\r\n" }
		for lines, want := range map[string]int{
			k(""): 400, k("   \t"): 400, k("a") + k("b"): 400, k("a") + k("a"): 400, k("\u00e9"): 400, k("e\u0301"): 400,
			k("a b"): 201, k(strings.Repeat("{", 255)): 201, k(strings.Repeat("{", 256)): 400, k("../../x"): 201, k("k\x7f"): 400,
			k("k\x00"): 400, k("k\x01"): 400, k("\x1b[31mred"): 400, k("\x9b31m"): 400, k("a\tb"): 400,
			k(`"abc`): 400, k(`"a", "b"`): 400, k("a,b"): 400, k(`"a,b"`): 201, k(`"a\"b"`): 201, k(`"q";p=1`): 201,
			"Idempotency-Key: x1\r\nX-Idempotency-Key: x2\r\n": 400, "Idempotency-Key: x3\r\nX-Idempotency-Key: x3\r\n": 201,
			k("no-caller") + "X-User: \x9b31m\u202e\r\n": 400,
		} {
			if got := raw("/x", lines); got != want {
				t.Errorf("%q: %d, want %d", lines, got, want)
			}
		}
		if runs.Load() != 7 {
			t.Errorf("%d runs", runs.Load())
		}
		if got := raw("/panic", k("SECRET-MARK{}")); got != 0 {
			t.Errorf("a panic was answered by %d", got)
		}
		store.Refuse(faultstore.Finish, -1)
		if got := raw("/x", k("SECRET-MARK{{")); got != 201 {
			t.Errorf("unrecorded: %d", got)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if lost, _ := g.Close(gone); lost == 0 {
			t.Errorf("%d results given up", lost)
		}
		s.Close()
		for name, text := range map[string]string{"server": served.String(), "slog": slogged.String()} {
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s: a raw byte in %q", name, text[max(0, i-100):min(len(text), i+100)])
			}
			for _, secret := range []string{"SECRET-MARK", "../../x", "{{"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: a key's text %q in %q", name, secret, text)
				}
			}
		}
		if !strings.Contains(slogged.String(), "given up") || !strings.Contains(slogged.String(), "no such user") || !strings.Contains(served.String(), "broken") {
			t.Errorf("not logged at all: %q %q", slogged, served)
		}
	})
}

func TestCaseB042WhatDoesNotCount(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
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
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
		for _, k := range []string{"abc", `"abc"`, `"abc";v=1`} {
			if a := s.do(t, "POST", "/x", k, "x"); a.status != 201 {
				t.Errorf("%s: %+v", k, a)
			}
		}
		s.wantRuns(t, 1)
	})
}
