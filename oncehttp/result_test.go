package oncehttp_test

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

// TestReason: the record says why in the handler's words, whenever they were spoken, and no client gets the header.
func TestReason(t *testing.T) {
	t.Parallel()
	const why = "the bank did not answer in 30s"
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		want string
	}{
		{"none", respond(502, ""), "HTTP status 502"},
		{"empty", func(w http.ResponseWriter, _ *http.Request) {
			oncehttp.SetReason(w, "")
			w.WriteHeader(502)
		}, "HTTP status 502"},
		{"before the status", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			oncehttp.SetReason(w, why)
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(502)
		}, why},
		{"after it", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			_, _ = io.WriteString(w, "own words")
			oncehttp.SetReason(w, why)
		}, why},
		{"the last holds", func(w http.ResponseWriter, _ *http.Request) {
			oncehttp.SetReason(w, "first thought")
			w.WriteHeader(502)
			oncehttp.SetReason(w, why)
		}, why},
		{"streamed", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			oncehttp.SetReason(w, why)
			_, _ = io.WriteString(w, long)
		}, why},
		{"after streaming", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			_, _ = io.WriteString(w, long)
			oncehttp.SetReason(w, why)
		}, why},
		{"final", func(w http.ResponseWriter, _ *http.Request) {
			oncehttp.SetReason(w, why)
			w.WriteHeader(422)
		}, why},
		{"panic", func(w http.ResponseWriter, _ *http.Request) {
			oncehttp.SetReason(w, why)
			panic(http.ErrAbortHandler)
		}, why},
		{"panic without a word", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the handler panicked or left by Goexit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 1000}, c.h)
			a, _ := s.try(t, "POST", "/x", "K", "x")
			if a.header.Get("Onceward-Reason") != "" {
				t.Errorf("the client got %v", a.header)
			}
			snap, err := store.Get(t.Context(), id("K"))
			if err != nil || snap.Record.Error != c.want {
				t.Errorf("the record says %q (%v), want %q", snap.Record.Error, err, c.want)
			}
			if again := s.do(t, "POST", "/x", "K", "x"); again.status == 409 && !strings.Contains(again.body, c.want) {
				t.Errorf("%+v", again)
			}
			if a, _ := s.try(t, "GET", "/x", "", ""); a.header.Get("Onceward-Reason") != "" {
				t.Errorf("unguarded, the client got %v", a.header)
			}
		})
	}
}

// TestNewResult: what it makes is what is kept of a handler's answer, and is replayed like one.
func TestNewResult(t *testing.T) {
	t.Parallel()
	header := http.Header{"Content-Type": {"text/csv"}, "Link": {"</a>", "</b>"}, "Set-Cookie": {"sid=1"}, "Etag": nil, "X-Other": {"x"}}
	for _, c := range []struct {
		status int
		header http.Header
		body   []byte
	}{{200, header, []byte("a,b\n")}, {201, nil, nil}, {204, header, nil}, {422, http.Header{}, []byte("no")}} {
		made, err := oncehttp.NewResult(c.status, c.header, c.body)
		if err != nil {
			t.Fatal(err)
		}
		store := memstore.New(nil)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range c.header {
				w.Header()[name] = values
			}
			w.WriteHeader(c.status)
			_, _ = w.Write(c.body)
		})
		s.do(t, "POST", "/x", "K", "x")
		snap, err := store.Get(t.Context(), id("K"))
		if err != nil || !reflect.DeepEqual(snap.Record.Result, made) {
			t.Errorf("%d: kept %+v (%v), made %+v", c.status, snap.Record.Result, err, made)
		}
	}

	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, respond(500, "lost"))
		s.do(t, "POST", "/x", "K", "x")
		snap, err := store.Get(t.Context(), id("K"))
		if err != nil {
			t.Fatal(err)
		}
		made, _ := oncehttp.NewResult(201, header, []byte("paid"))
		_, err = store.Settle(t.Context(), driver.Settlement{
			ID: id("K"), Fence: snap.Record.Fence, Outcome: driver.Outcome{Status: driver.Success, Result: made}, Resolution: "by ann", Owner: driver.Owner{1},
		})
		if err != nil {
			t.Fatal(err)
		}
		a := s.do(t, "POST", "/x", "K", "x")
		if a.status != 201 || a.body != "paid" || a.header.Get("Content-Type") != "text/csv" || len(a.header["Link"]) != 2 || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})

	for status, body := range map[int]string{0: "", 103: "", 199: "", 1000: "", 204: "x", 304: "x"} {
		if r, err := oncehttp.NewResult(status, nil, []byte(body)); err == nil {
			t.Errorf("%d %q: %+v", status, body, r)
		}
	}
	if _, err := oncehttp.NewResult(200, http.Header{"Link": {strings.Repeat("x", 33<<10)}}, nil); err == nil {
		t.Error("headers that no record keeps were taken")
	}
}
