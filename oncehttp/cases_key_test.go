package oncehttp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

func TestCaseB031NoSharedScope(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
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
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
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
