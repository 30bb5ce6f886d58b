package oncehttp_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// resident is what the process holds of the system's memory, roughly its RSS.
func resident() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

// TestCaseB128TenThousandAtOnce: however many requests are in the middle of their work, the bytes held stay in the budget,
// the process grows by little more than that and what each request costs anyway, and nothing is held afterwards. It is
// not parallel: memory is the process's.
func TestCaseB128TenThousandAtOnce(t *testing.T) { //nolint:paralleltest // see above
	const n, size, limit = 10_000, 4 << 10, 16 << 20
	const each = 24 << 10 // goroutine, request, recorder, attempt, record: of the test, the guard and the store
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
	debug.FreeOSMemory()
	before := resident()
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
		runtime.Gosched()
	}
	grown := resident() - before
	t.Logf("%d inside, %d refused, grown by %d KiB", inside.Load(), refused.Load(), grown>>10)
	if grown > limit+n*each {
		t.Errorf("the process grew by %d bytes", grown)
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

// TestCaseB128TwoHundredMebibytes: 200 bodies of 1 MiB at one time over a real server, each whole; the process, which is
// the clients too, grows by less than 400 MiB. It is not parallel: memory is the process's.
func TestCaseB128TwoHundredMebibytes(t *testing.T) { //nolint:paralleltest // see above
	const n, size = 200, 1 << 20
	budget := oncehttp.NewBudget(256 << 20)
	body := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{128}).Read(body)
	want := sha256.Sum256(body)
	var inside atomic.Int64
	release, all := make(chan struct{}), make(chan struct{})
	s := newSite(t, onceward.Operation{}, &oncehttp.Options{Budget: budget}, func(w http.ResponseWriter, r *http.Request) {
		if inside.Add(1) == n {
			close(all)
		}
		<-release
		h := sha256.New()
		if _, err := io.Copy(h, r.Body); err != nil || !bytes.Equal(h.Sum(nil), want[:]) {
			t.Errorf("another body, or %v", err)
		}
		_, _ = io.WriteString(w, "whole")
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	debug.FreeOSMemory()
	before := resident()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, bytes.NewReader(body))
			r.Header.Set("Idempotency-Key", fmt.Sprint("k", i))
			resp, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 200 || string(b) != "whole" {
				t.Errorf("%d %s", resp.StatusCode, b)
			}
		})
	}
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Errorf("%d are inside", inside.Load())
	}
	grown := resident() - before
	t.Logf("%d MiB held, grown by %d MiB", budget.Held()>>20, grown>>20)
	if grown > 400<<20 {
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
	if held := budget.Held(); held < n*size || held > 256<<20 {
		t.Errorf("%d bytes are held", held)
	}
	close(release)
	wg.Wait()
	s.Close()
	if held := budget.Held(); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
	s.wantRuns(t, n)
}
