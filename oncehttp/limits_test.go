package oncehttp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

// TestCaseB029WhatWentOut: three writes of an encoder are one answer.
func TestCaseB029WhatWentOut(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			enc := json.NewEncoder(w)
			for i := range 3 {
				_ = enc.Encode(map[string]int{"n": i})
			}
		})
		for range 2 {
			if a := s.do(t, "POST", "/x", "K", "x"); a.body != "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n" {
				t.Errorf("%+v", a)
			}
		}
		s.wantRuns(t, 1)
	})
}

// TestCaseB046B048Freed: a route may say that a 409, or a 400, is not the last word.
func TestCaseB046B048Freed(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{400: oncehttp.NotDone}}, func(w http.ResponseWriter, r *http.Request) {
			if b, _ := io.ReadAll(r.Body); string(b) == "wrong" {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		for range 2 {
			if a := s.do(t, "POST", "/x", "K", "wrong"); a.status != 400 || a.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%+v", a)
			}
		}
		s.wantRuns(t, 2)
		// The key stays bound to its request: a corrected one is another intent.
		if a := s.do(t, "POST", "/x", "K", "right"); a.status != 422 {
			t.Errorf("%+v", a)
		}
	})
}

func TestCaseB038KeyInAnArray(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, &oncehttp.Options{RequireKey: true, Keys: []oncehttp.KeySource{oncehttp.FromJSON("/events/0/id")}}, respond(201, "paid"))
	for body, want := range map[string]int{
		`{"events":[{"id":"a"}]}`: 201, `{"events":[{"id":7}]}`: 201, `{"events":[]}`: 400, `{"events":{"0":{"id":"b"}}}`: 201,
		`{"events":[{"id":1.5}]}`: 400, `{"events":[{"id":"a"}]} {}`: 400,
		`{"events":[{"id":"a","id":"a"}]}`: 400,
	} {
		if a := s.do(t, "POST", "/x", "", body, "Content-Type", "application/json"); a.status != want {
			t.Errorf("%s: %d, want %d", body, a.status, want)
		}
	}
	s.wantRuns(t, 3)
}

func TestPlacesThatAreNone(t *testing.T) {
	t.Parallel()
	g, _ := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	op, _ := g.Define(onceward.Operation{Name: "x"})
	for _, o := range []oncehttp.Options{
		{LeaveOut: []string{"json:id"}}, {LeaveOut: []string{"json:/a~2"}}, {LeaveOut: []string{"header:X"}}, {LeaveOut: []string{""}},
		{Keys: []oncehttp.KeySource{{}}}, {Keys: []oncehttp.KeySource{oncehttp.FromJSON("id")}}, {MaxBody: -1}, {MaxResult: -1},
	} {
		if _, err := oncehttp.New(op, &o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if _, err := oncehttp.New(nil, nil); err == nil {
		t.Error("no operation was taken")
	}
}

// TestGuardedHEAD: as in net/http its body is taken and dropped.
func TestGuardedHEAD(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{Methods: []string{"HEAD"}}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			if n, err := io.WriteString(w, "hello"); n != 5 || err != nil {
				t.Errorf("%d %v", n, err)
			}
		})
		for range 2 {
			if a := s.do(t, "HEAD", "/x", "K", ""); a.status != 200 || a.body != "" {
				t.Errorf("%+v", a)
			}
		}
		s.wantRuns(t, 1)
		if snap, err := store.Get(t.Context(), id("K")); err != nil || len(snap.Record.Result.Data) != 0 {
			t.Errorf("kept: %q, %v", snap.Record.Result.Data, err)
		}
	})
}

// TestNoTypeIsGuessed for a decoded replay, because none was for the coded answer.
func TestNoTypeIsGuessed(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = io.WriteString(zw, "<html>")
		_ = zw.Close()
	})
	for _, accept := range []string{"gzip", "identity"} {
		a := s.do(t, "POST", "/x", "K", "x", "Accept-Encoding", accept)
		if types, has := a.header["Content-Type"]; has || accept == "identity" && (a.body != "<html>" || a.header.Get("Content-Length") != "6") {
			t.Errorf("%s: type %q, %+v", accept, types, a)
		}
	}
}

func TestCodingsThatAreNone(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.URL.Query().Get("as"))
		_, _ = io.WriteString(w, "hello")
	})
	for as, want := range map[string]string{"identity": "hello", "br": "result_not_kept", "gzip": "result_not_kept"} { // gzip: it is not
		s.do(t, "POST", "/x?as="+as, as, "x", "Accept-Encoding", as)
		if a := s.do(t, "POST", "/x?as="+as, as, "x", "Accept-Encoding", "gzip;Q=0, *;q=0.0"); !strings.Contains(a.body, want) {
			t.Errorf("%s: %+v", as, a)
		}
	}
}

// TestNoRoom: a body over somebody else's limit is a 413 too; a full budget is the server's fault; HTTP/2 keeps its
// connection.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	g, _ := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	op, _ := g.Define(onceward.Operation{Name: "x"})
	ask := func(h http.Handler, proto, size int) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/x", io.MultiReader(bytes.NewReader(make([]byte, size))))
		r.ProtoMajor = proto
		r.Header.Set("Idempotency-Key", "K")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	once, _ := oncehttp.New(op, &oncehttp.Options{MaxBody: 100})
	for proto, closes := range map[int]string{1: "close", 2: ""} {
		if w := ask(once(never), proto, 101); w.Code != 413 || w.Header().Get("Connection") != closes {
			t.Errorf("HTTP/%d: %d %v", proto, w.Code, w.Header())
		}
	}
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 10)
		once(never).ServeHTTP(w, r)
	})
	if w := ask(limited, 1, 11); w.Code != 413 || !strings.Contains(w.Body.String(), "at most 10 bytes") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	once, _ = oncehttp.New(op, &oncehttp.Options{Budget: oncehttp.NewBudget(10)})
	if w := ask(once(never), 1, 11); w.Code != 503 || !strings.Contains(w.Body.String(), `"retry":"same_key"`) || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestLargeHeadersAreNotKept: and so neither is the answer; duplicates are told that it is done.
func TestLargeHeadersAreNotKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", strings.Repeat("x", 40<<10))
		w.WriteHeader(http.StatusCreated)
	})
	if a := s.do(t, "POST", "/x", "K", "x"); len(a.header.Get("Link")) != 40<<10 {
		t.Errorf("%+v", a)
	}
	if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 || !strings.Contains(a.body, "result_not_kept") {
		t.Errorf("%+v", a)
	}
}
