package gateway_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/store/memstore"
)

// BenchmarkGateway compares the gateway on the memory store with a plain ReverseProxy on a tuned Transport, at 64
// callers, in turns of one run; x is the ratio of their rates. First is a new key each, Replay one key.
func BenchmarkGateway(b *testing.B) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(make([]byte, 256))
	}))
	b.Cleanup(up.Close)
	u, _ := url.Parse(up.URL)
	g, err := onceward.New(memstore.New(&memstore.Options{MaxRecords: 1 << 30}), &onceward.Options{SingleTenant: true})
	if err != nil {
		b.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "http"})
	if err != nil {
		b.Fatal(err)
	}
	h, err := gateway.New(&gateway.Options{Upstream: u, Default: gateway.Route{Op: op}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	own := httptest.NewServer(h)
	b.Cleanup(own.Close)
	plain := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 512, DisableCompression: true},
	})
	b.Cleanup(plain.Close)

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	b.Cleanup(client.CloseIdleConnections)
	var seq atomic.Int64
	const callers, turns = 64, 10
	turn := func(b *testing.B, n int, target string, keyOf func() string) time.Duration {
		var wg sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(n))
		start := time.Now()
		for range callers {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					r, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, target+"/pay", strings.NewReader("x"))
					r.Header.Set("Idempotency-Key", keyOf())
					resp, err := client.Do(r)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	for name, keyOf := range map[string]func() string{
		"First":  func() string { return strconv.FormatInt(seq.Add(1), 10) },
		"Replay": func() string { return "one" },
	} {
		b.Run(name, func(b *testing.B) {
			per := max(b.N/turns, callers)
			turn(b, callers, own.URL, keyOf)
			turn(b, callers, plain.URL, keyOf)
			var mine, theirs time.Duration
			b.ResetTimer()
			for range turns {
				mine += turn(b, per, own.URL, keyOf)
				theirs += turn(b, per, plain.URL, keyOf)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(mine.Nanoseconds())/float64(per*turns), "own-ns/op")
			b.ReportMetric(float64(theirs.Nanoseconds())/float64(per*turns), "plain-ns/op")
			b.ReportMetric(float64(theirs)/float64(mine), "x")
		})
	}
}
