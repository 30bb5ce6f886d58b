package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

// TestNothingWrittenIsTriedOnceMore: a keyed request of which not a byte was written goes out on a fresh connection, whatever
// its method and body; if that fails too, it is not tried for ever.
func TestNothingWrittenIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	t.Cleanup(srv.Close)
	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	op, err := guard.Define(onceward.Operation{Name: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, body string }{{"POST", ""}, {"POST", "x"}, {"GET", ""}, {"DELETE", ""}} {
		t.Run(c.method+" "+c.body, func(t *testing.T) {
			t.Parallel()
			d, err := guard.Begin(t.Context(), op, onceward.Call{Key: key.New()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = d.Attempt.Succeed(t.Context(), onceward.Result{}) }()
			r, err := http.NewRequestWithContext(d.Attempt.Context(), c.method, srv.URL, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.body == "" {
				r.Body, r.GetBody = nil, nil
			}
			r.Header.Set("Idempotency-Key", "K")
			tr := newOnceTransport()
			t.Cleanup(tr.kept.CloseIdleConnections)
			var dials atomic.Int64
			away := func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				return nil, errors.New("nobody there")
			}
			tr.kept.DialContext = away
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || string(b) != c.body || dials.Load() != 1 {
				t.Fatalf("%q %v after %d dials", b, err, dials.Load())
			}
			tr.fresh.DialContext = away
			if c.body != "" {
				r.Body, _ = r.GetBody()
			}
			again, err := tr.RoundTrip(r)
			if err == nil {
				_ = again.Body.Close()
			}
			if !errors.Is(err, errNotSent) || dials.Load() != 3 {
				t.Fatalf("%v after %d dials", err, dials.Load())
			}
		})
	}
}
