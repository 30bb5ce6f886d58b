package oncehttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/key"
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

// BenchmarkMiddleware is what a guarded request costs over the plain handler, without a network. The guard's rows make
// the same decisions and keep the same bytes without HTTP: what is between them and the middleware's is this package.
func BenchmarkMiddleware(b *testing.B) {
	payload, created := []byte(`{"amount":4200,"currency":"EUR"}`), []byte(`{"id":"pay_1"}`)
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(created)
	})
	operation := func(b *testing.B) *onceward.Op {
		g, err := onceward.New(memstore.New(&memstore.Options{MaxRecords: 1 << 30}), &onceward.Options{SingleTenant: true})
		if err != nil {
			b.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		return op
	}
	guarded := func(b *testing.B) http.Handler {
		once, err := oncehttp.New(operation(b), nil)
		if err != nil {
			b.Fatal(err)
		}
		return once(plain)
	}
	loop := func(b *testing.B, name func(i int) string, do func(name string)) {
		names := make([]string, 1<<16) // made outside the clock
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%len(names) == 0 {
				b.StopTimer()
				for j := range names {
					names[j] = name(i + j)
				}
				b.StartTimer()
			}
			do(names[i%len(names)])
		}
	}
	serve := func(b *testing.B, h http.Handler, name func(i int) string) {
		w := &sink{h: http.Header{}}
		r := &http.Request{
			Method: "POST", URL: &url.URL{Path: "/pay"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(payload)),
			Header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {""}},
		}
		rd := bytes.NewReader(payload)
		loop(b, name, func(name string) {
			rd.Reset(payload)
			r.Body = body{rd}
			r.Header["Idempotency-Key"][0] = name
			clear(w.h)
			h.ServeHTTP(w, r)
			if w.status != http.StatusCreated {
				b.Fatal(w.status)
			}
		})
	}
	decide := func(b *testing.B, op *onceward.Op, name func(i int) string) {
		sum, err := fingerprint.Of(payload)
		if err != nil {
			b.Fatal(err)
		}
		ctx := context.Background() //nolint:usetesting // a context without a cost, as the requests have
		result := onceward.Result{Codec: "http", Meta: []byte("201\nContent-Type:application/json"), Data: created}
		loop(b, name, func(name string) {
			k, err := key.Parse(name)
			if err != nil {
				b.Fatal(err)
			}
			d, err := op.Guard().Begin(ctx, op, onceward.Call{Key: k, Fingerprint: sum})
			if err == nil && d.Kind == onceward.KindRun {
				_, err = d.Attempt.Succeed(ctx, result)
			}
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	fresh := func(i int) string { return "k" + strconv.Itoa(i) }
	same := func(int) string { return "k" }
	b.Run("plain", func(b *testing.B) { serve(b, plain, fresh) })
	b.Run("first", func(b *testing.B) { serve(b, guarded(b), fresh) })
	b.Run("replay", func(b *testing.B) { serve(b, guarded(b), same) })
	b.Run("guard/first", func(b *testing.B) { decide(b, operation(b), fresh) })
	b.Run("guard/replay", func(b *testing.B) { decide(b, operation(b), same) })
}
