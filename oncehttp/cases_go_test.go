package oncehttp_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/storetest"
)

// TestCaseB126AbortIsPassedOn: the same panic value reaches the outside, the client sees a broken connection and never a
// 500, the log stays quiet, and the record is not complete. Held back or half sent, it makes no difference.
func TestCaseB126AbortIsPassedOn(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		g, _ := onceward.New(store, &onceward.Options{SingleTenant: true})
		op, _ := g.Define(onceward.Operation{Name: "http"})
		once, _ := oncehttp.New(op, &oncehttp.Options{MaxResult: 1000})
		var runs atomic.Int64
		var outside atomic.Pointer[any]
		inner := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			_, _ = io.WriteString(w, strings.Repeat("x", int(r.ContentLength)))
			panic(http.ErrAbortHandler)
		}))
		s, log := logged(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if p := recover(); p != nil {
					outside.Store(&p)
					panic(p)
				}
			}()
			inner.ServeHTTP(w, r)
		}))
		for k, size := range map[string]int{"held back": 1, "half sent": 5000} {
			body := strings.Repeat("b", size)
			a, err := s.try(t, "POST", "/x", k, body)
			if err == nil || a.status != 0 && a.status != 200 {
				t.Errorf("%s: the client got %+v, %v", k, a, err)
			}
			if size == 1 && a.body != "" {
				t.Errorf("%s: %q left before it was recorded", k, a.body)
			}
			if p := outside.Swap(nil); p == nil || *p != any(http.ErrAbortHandler) {
				t.Errorf("%s: outside came %v", k, p)
			}
			snap, err := store.Get(t.Context(), id(k))
			if err != nil || snap.Record.Failure != driver.Unknown {
				t.Errorf("%s: %+v %v", k, snap.Record, err)
			}
			if a := s.do(t, "POST", "/x", k, body); a.status != 409 || !strings.Contains(a.body, "outcome_unknown") {
				t.Errorf("%s: a duplicate got %+v", k, a)
			}
		}
		if runs.Load() != 2 || log.String() != "" {
			t.Errorf("%d runs, log %q", runs.Load(), log)
		}
	})
}

// TestCaseB128BodyLimit: 413 before anything runs, whatever the framing, and never a shortened body.
func TestCaseB128BodyLimit(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		budget := oncehttp.NewBudget(16 << 20)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{Budget: budget}, func(w http.ResponseWriter, r *http.Request) {
			h := sha256.New()
			_, _ = io.Copy(h, r.Body)
			_, _ = fmt.Fprintf(w, "%x", h.Sum(nil))
		})
		client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}} // a busy server has time to say no
		defer client.CloseIdleConnections()
		full := make([]byte, 1<<20)
		_, _ = rand.NewChaCha8([32]byte{128}).Read(full)
		post := func(k string, body io.Reader) (int, string) {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/x", body)
			r.Header.Set("Idempotency-Key", k)
			r.Header.Set("Expect", "100-continue")
			resp, err := client.Do(r)
			if err != nil {
				return 0, err.Error() // refused while the body was on its way: the connection is closed
			}
			defer func() { _ = resp.Body.Close() }()
			b, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(b)
		}
		if status, body := post("a", bytes.NewReader(full)); status != 200 || body != fmt.Sprintf("%x", sha256.Sum256(full)) {
			t.Errorf("1 MiB: %d %s", status, body)
		}
		s.wantRuns(t, 1)
		over := append(bytes.Clone(full), 1)
		if status, body := post("b", bytes.NewReader(over)); status != 413 || !strings.Contains(body, "body_too_large") {
			t.Errorf("one byte more: %d %s", status, body)
		}
		if status, _ := post("c", io.MultiReader(bytes.NewReader(over))); status != 413 {
			t.Errorf("one byte more, chunked: %d", status)
		}
		s.wantRuns(t, 1)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				status, _ := post(fmt.Sprint("p", i), bytes.NewReader(full))
				if status != 200 && status != 503 && status != 0 {
					t.Errorf("%d", status)
				}
				if held := budget.Held(); held > 16<<20 {
					t.Errorf("%d bytes were held", held)
				}
			})
		}
		wg.Wait()
		s.Close()
		if held := budget.Held(); held != 0 {
			t.Errorf("%d bytes are held by nobody", held)
		}
	})
}

// TestCaseB131Streams: recorded under the limit; above it the first client gets all and duplicates are told.
func TestCaseB131Streams(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 64}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			n := 3
			if r.URL.Path == "/long" {
				n = 30
			}
			for i := range n {
				_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
			}
		})
		first, again := s.do(t, "POST", "/short", "S", "x"), s.do(t, "POST", "/short", "S", "x")
		if first.body != "data: 0\n\ndata: 1\n\ndata: 2\n\n" || again.body != first.body || again.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%+v %+v", first, again)
		}
		if a := s.do(t, "POST", "/long", "L", "x"); strings.Count(a.body, "data:") != 30 {
			t.Errorf("%+v", a)
		}
		if a := s.do(t, "POST", "/long", "L", "x"); a.status != 200 || !strings.Contains(a.body, "result_not_kept") {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 2)
	})
}

// TestCaseB132TimeoutHandler: inside the middleware its 503 tells nothing; outside, the late answer is replayed.
func TestCaseB132TimeoutHandler(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		g, _ := onceward.New(store, &onceward.Options{SingleTenant: true})
		for i, inside := range []bool{true, false} {
			op, _ := g.Define(onceward.Operation{Name: fmt.Sprint("op", i), OnInFlight: onceward.Wait(time.Minute)})
			once, _ := oncehttp.New(op, nil)
			var runs atomic.Int64
			release := make(chan struct{})
			slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs.Add(1)
				<-release
				w.WriteHeader(http.StatusCreated)
			})
			h := http.TimeoutHandler(once(slow), 20*time.Millisecond, "too slow")
			if inside {
				h = once(http.TimeoutHandler(slow, 20*time.Millisecond, "too slow"))
			}
			ask := func() *httptest.ResponseRecorder {
				r := httptest.NewRequest("POST", "/x", strings.NewReader("x"))
				r.Header.Set("Idempotency-Key", "K")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			if w := ask(); w.Code != 503 || w.Body.String() != "too slow" {
				t.Errorf("inside %v: %d %s", inside, w.Code, w.Body)
			}
			close(release)
			if inside {
				if w := ask(); w.Code != 409 || !strings.Contains(w.Body.String(), "outcome_unknown") {
					t.Errorf("inside: %d %s", w.Code, w.Body)
				}
			} else {
				for w := ask(); w.Code != 201; w = ask() {
					if w.Code != 503 {
						t.Fatalf("outside: %d %s", w.Code, w.Body)
					}
				}
			}
			if runs.Load() != 1 {
				t.Errorf("inside %v: ran %d times", inside, runs.Load())
			}
		}
	})
}
