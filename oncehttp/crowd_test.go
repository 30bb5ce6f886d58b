package oncehttp_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// TestTenThousandAtOnce: however many requests are in the middle of their work, the bytes held stay in the budget, and
// nothing is held afterwards.
func TestTenThousandAtOnce(t *testing.T) {
	t.Parallel()
	const n, size, limit = 10_000, 4 << 10, 16 << 20
	budget := oncehttp.NewBudget(limit)
	g, _ := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	op, _ := g.Define(onceward.Operation{Name: "http"})
	once, err := oncehttp.New(op, &oncehttp.Options{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	var inside, refused atomic.Int64
	release := make(chan struct{})
	h := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		inside.Add(1)
		_, _ = w.Write(make([]byte, 512))
		<-release
	}))
	body := make([]byte, size)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/x", bytes.NewReader(body))
			r.Header.Set("Idempotency-Key", fmt.Sprint("k", i))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusServiceUnavailable {
				refused.Add(1)
			} else if w.Code != http.StatusOK {
				t.Errorf("%d", w.Code)
				refused.Add(1) // counted, so that the wait below ends
			}
		})
	}
	for inside.Load()+refused.Load() < n {
		if held := budget.Held(); held > limit {
			t.Fatalf("%d bytes are held, the limit is %d", held, limit)
		}
	}
	if held := budget.Held(); held < inside.Load()*size || held > limit {
		t.Errorf("%d requests are inside and %d bytes are held", inside.Load(), held)
	}
	if refused.Load() == 0 || inside.Load() < limit/(4*size) {
		t.Errorf("%d inside, %d refused", inside.Load(), refused.Load())
	}
	close(release)
	wg.Wait()
	if held := budget.Held(); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
}
