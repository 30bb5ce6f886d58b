package oncehttp_test

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// sink is a ResponseWriter that costs nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

func benchHandler(b *testing.B, guarded bool) http.Handler {
	b.Helper()
	body := make([]byte, 256)
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"text/plain"}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	if !guarded {
		return plain
	}
	g, err := onceward.New(memstore.New(&memstore.Options{MaxRecords: 1 << 30}), &onceward.Options{SingleTenant: true})
	if err != nil {
		b.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "http"})
	if err != nil {
		b.Fatal(err)
	}
	once, err := oncehttp.New(op, nil)
	if err != nil {
		b.Fatal(err)
	}
	return once(plain)
}

func benchServe(b *testing.B, h http.Handler, keyOf func(i int) string) {
	b.Helper()
	u := &url.URL{Path: "/pay"}
	w := &sink{header: http.Header{}}
	ctx := b.Context()
	b.ReportAllocs()
	for i := range b.N {
		r := (&http.Request{Method: http.MethodPost, URL: u, Header: http.Header{"Idempotency-Key": {keyOf(i)}}, Body: http.NoBody}).WithContext(ctx)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// The middleware's cost is Guarded less Plain, on the memory store, with an answer of 256 bytes.
func BenchmarkPlain(b *testing.B) { benchServe(b, benchHandler(b, false), strconv.Itoa) }

func BenchmarkGuardedFirst(b *testing.B) { benchServe(b, benchHandler(b, true), strconv.Itoa) }

func BenchmarkGuardedReplay(b *testing.B) {
	benchServe(b, benchHandler(b, true), func(int) string { return "one" })
}
