package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

func TestCaseB007AnotherPathIsAMismatchBeforeItRuns(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		entered, release := make(chan struct{}), make(chan struct{})
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-release
			w.WriteHeader(http.StatusCreated)
		})
		first := make(chan answer, 1)
		go func() { first <- s.do(t, "POST", "/payments", "K", "x") }()
		<-entered
		if a := s.do(t, "POST", "/refunds", "K", "x"); a.status != 422 {
			t.Errorf("%+v", a)
		}
		close(release)
		<-first
		if a := s.do(t, "POST", "/payments", "K", "x"); a.status != 201 || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}

// TestCaseB009EveryWayToEnd: whatever way a handler ends, its key is never in flight for ever: a duplicate that comes no
// later than the lease and its grace gets the answer, or another run where that is safe, or is told that nobody knows.
func TestCaseB009EveryWayToEnd(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f.txt")
	if err := os.WriteFile(name, []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("m"), 1<<20)
	for _, c := range []struct {
		name    string
		h       http.HandlerFunc // of the first run
		replays bool
	}{
		{"writes nothing", func(http.ResponseWriter, *http.Request) {}, true},
		{"serves a file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, name) }, true},
		{"copies 1 MiB", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, bytes.NewReader(big)) }, true},
		{"panics", func(http.ResponseWriter, *http.Request) { panic("broken") }, false},
		{"leaves by Goexit", func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
				for _, repeatable := range []bool{false, true} {
					o := onceward.Operation{Repeatable: repeatable, Lease: 300 * time.Millisecond}
					var s *site
					s = siteOn(t, stores.Open(t), o, &oncehttp.Options{MaxResult: 2 << 20}, func(w http.ResponseWriter, r *http.Request) {
						if s.runs.Load() == 1 {
							c.h(w, r)
							return
						}
						_, _ = io.WriteString(w, "second run")
					})
					first, err := s.try(t, "POST", "/x", "K", "x")
					if c.replays != (err == nil) {
						t.Fatalf("%+v %v", first, err)
					}
					for range 2 {
						again := s.do(t, "POST", "/x", "K", "x")
						switch {
						case c.replays:
							if again.body != first.body || again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" {
								t.Errorf("%d bytes, then %d with %d", len(first.body), len(again.body), again.status)
							}
						case repeatable:
							if again.body != "second run" || again.status != 200 {
								t.Errorf("%+v", again)
							}
						case again.status != 409 || !strings.Contains(again.body, "outcome_unknown"):
							t.Errorf("%+v", again)
						}
					}
					if repeatable && !c.replays {
						s.wantRuns(t, 2)
					} else {
						s.wantRuns(t, 1)
					}
				}
			})
		})
	}
}

func TestCaseB013PanicOfARepeatableRunsAgain(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		first := true
		s := siteOn(t, store, onceward.Operation{Repeatable: true}, nil, func(w http.ResponseWriter, _ *http.Request) {
			if first {
				first = false
				panic("broken")
			}
			w.WriteHeader(http.StatusCreated)
		})
		if _, err := s.try(t, "POST", "/x", "K", "x"); err == nil {
			t.Error("the panic was hidden")
		}
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 2)
	})
}

func TestCaseB017CorruptRecord(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	s := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
	s.do(t, "POST", "/x", "K", "x")
	id := driver.Identify(driver.Scope{}, "http", "K")
	snap, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	snap.Record.Result.Data = nil
	store.Put(snap.Record)
	if a := s.do(t, "POST", "/x", "K", "x"); a.status != 500 || !strings.Contains(a.body, "corrupt_record") {
		t.Errorf("%+v", a)
	}
	s.wantRuns(t, 1)
}

// failing refuses a call of the store while it is told to.
type failing struct {
	driver.Store
	mu     sync.Mutex
	claims bool
	ends   bool
}

func (f *failing) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claims {
		return driver.Claimed{}, errors.New("store away")
	}
	return f.Store.Claim(ctx, c)
}

func (f *failing) Finish(ctx context.Context, e driver.Finish) (driver.Finished, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends {
		return driver.Finished{}, errors.New("store away")
	}
	return f.Store.Finish(ctx, e)
}

func TestStoreDownAndUnrecorded(t *testing.T) {
	t.Parallel()
	store := &failing{Store: memstore.New(nil), ends: true}
	g, _ := onceward.New(store, &onceward.Options{SingleTenant: true, StoreTimeout: 50 * time.Millisecond, FinishGrace: 50 * time.Millisecond})
	closed, _ := g.Define(onceward.Operation{Name: "closed"})
	open, err := g.Define(onceward.Operation{Name: "open", OnStoreDown: onceward.Open, Repeatable: true})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(op *onceward.Op, k string) *httptest.ResponseRecorder {
		once, _ := oncehttp.New(op, nil)
		r := httptest.NewRequest("POST", "/x", strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", k)
		w := httptest.NewRecorder()
		once(respond(201, "paid")).ServeHTTP(w, r)
		return w
	}
	if w := ask(closed, "K"); w.Code != 201 || w.Header().Get("Idempotency-Status") != "unrecorded" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(closed, "K"); w.Code != 409 || w.Header().Get("Idempotency-Status") != "in_flight" {
		t.Errorf("meanwhile: %d %v", w.Code, w.Header())
	}
	store.mu.Lock()
	store.ends = false
	store.mu.Unlock()
	for w := ask(closed, "K"); w.Header().Get("Idempotent-Replayed") != "true"; w = ask(closed, "K") {
		if w.Code != 409 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		runtime.Gosched()
	}
	store.mu.Lock()
	store.claims = true
	store.mu.Unlock()
	if w := ask(closed, "other"); w.Code != 503 || !strings.Contains(w.Body.String(), "store_unavailable") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(open, "other"); w.Code != 201 || w.Header().Get("Idempotency-Status") != "bypassed" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _ = g.Close(ctx)
}
