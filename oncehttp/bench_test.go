package oncehttp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// sink is a response writer that costs nothing.
type sink struct {
	h      http.Header
	status int
	n      int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }

type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

// BenchmarkMiddleware is what a guarded request costs over the plain handler, without a network.
func BenchmarkMiddleware(b *testing.B) {
	payload, created := []byte(`{"amount":4200,"currency":"EUR"}`), []byte(`{"id":"pay_1"}`)
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(created)
	})
	guarded := func(b *testing.B) http.Handler {
		g, err := onceward.New(memstore.New(&memstore.Options{MaxRecords: 1 << 30}), &onceward.Options{SingleTenant: true})
		if err != nil {
			b.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		once, err := oncehttp.New(op, nil)
		if err != nil {
			b.Fatal(err)
		}
		return once(plain)
	}
	run := func(b *testing.B, h http.Handler, key func(i int) string) {
		w := &sink{h: http.Header{}}
		r := &http.Request{
			Method: "POST", URL: &url.URL{Path: "/pay"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(payload)),
			Header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {""}},
		}
		rd := bytes.NewReader(payload)
		keys := make([]string, 1<<16) // made outside the clock
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%len(keys) == 0 {
				b.StopTimer()
				for j := range keys {
					keys[j] = key(i + j)
				}
				b.StartTimer()
			}
			rd.Reset(payload)
			r.Body = body{rd}
			r.Header["Idempotency-Key"][0] = keys[i%len(keys)]
			clear(w.h)
			h.ServeHTTP(w, r)
			if w.status != http.StatusCreated {
				b.Fatal(w.status)
			}
		}
	}
	fresh := func(i int) string { return "k" + strconv.Itoa(i) }
	b.Run("plain", func(b *testing.B) { run(b, plain, fresh) })
	b.Run("first", func(b *testing.B) { run(b, guarded(b), fresh) })
	b.Run("replay", func(b *testing.B) { run(b, guarded(b), func(int) string { return "k" }) })
}
