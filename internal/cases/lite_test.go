package cases

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncetest"
)

// TestCaseB065NeverTwoHolders: the key is held, freed and forgotten a hundred times by callers of two processes, and what
// it protects, which nothing else does, is exact.
func TestCaseB065NeverTwoHolders(t *testing.T) {
	t.Parallel()
	const callers = 100
	onEveryStore(t, func(w *world) {
		ps := w.processes(2, onceward.Operation{})
		var protected atomic.Int64 // read and written apart, so that a second holder loses one of the two
		var mu sync.Mutex
		freed := make(chan struct{})
		next := func() <-chan struct{} { mu.Lock(); defer mu.Unlock(); return freed }
		free := func() {
			mu.Lock()
			defer mu.Unlock()
			close(freed)
			freed = make(chan struct{})
		}
		busy := errors.New("nothing happened")
		for _, err := range oncetest.Storm(w, func(i int) error {
			for late := time.After(patience); ; {
				wake := next()
				a := ps[i%2].pay("K", func(context.Context) error {
					n := protected.Load()
					runtime.Gosched()
					protected.Store(n + 1)
					return onceward.Retryable(busy)
				})
				switch {
				case errors.Is(a.err, busy):
					free()
					return nil
				case !errors.Is(a.err, onceward.ErrInFlight):
					return fmt.Errorf("%v", a)
				}
				select {
				case <-wake:
				case <-late:
					return errors.New("waited in vain")
				}
			}
		}, callers) {
			if err != nil {
				w.Error(err)
			}
		}
		if n := protected.Load(); n != callers {
			w.Errorf("%d, want %d", n, callers)
		}
		w.wantRuns("K", callers)
		w.wantRun(callers+1, ps[0].pay("K", nil))
	})
}

// TestCaseB065ExpiredKeyIsNew: past its retention one of those who race for it runs, as a first attempt.
func TestCaseB065ExpiredKeyIsNew(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		ps := w.processes(6, onceward.Operation{Retention: time.Hour})
		for i := range 5 {
			keyText := fmt.Sprint("K", i)
			first := ps[i%len(ps)].pay(keyText, nil)
			w.wantRun(1, first)
			fence := w.record(keyText).Fence
			w.shift(keyText, 59*time.Minute)
			w.wantReplay(first.body, ps[0].pay(keyText, nil))
			w.shift(keyText, 2*time.Minute)
			winner := w.race(ps, keyText)
			if winner == nil {
				continue
			}
			if winner.Number != 1 || winner.Attempt.Takeover() || winner.Attempt.Fence() <= fence {
				w.Errorf("%+v", winner)
			}
			if end, err := winner.Attempt.Succeed(w.Context(), onceward.Result{Codec: "raw", Data: []byte("second")}); err != nil || !end.Recorded {
				w.Errorf("%+v %v", end, err)
			}
			w.wantReplay([]byte("second"), ps[1].pay(keyText, nil))
			w.wantRuns(keyText, 1)
		}
	})
}

// TestCaseB067ZeroValues: a guard with as little as may be given serves a call with a key and one without.
func TestCaseB067ZeroValues(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		for name, c := range map[string]struct {
			opts *onceward.Options
			call onceward.Call
			want *onceward.Error // nil: it runs once and is replayed
		}{
			"no options":              {nil, onceward.Call{Key: k("A"), Scope: onceward.Scope{Caller: "c"}}, nil},
			"no options nor key":      {nil, onceward.Call{Scope: onceward.Scope{Caller: "c"}}, onceward.ErrKeyMissing},
			"no options nor scope":    {nil, onceward.Call{Key: k("B")}, onceward.ErrScopeMissing},
			"zero options":            {&onceward.Options{}, onceward.Call{Key: k("C"), Scope: onceward.Scope{Tenant: "t"}}, nil},
			"zero options, no scope":  {&onceward.Options{}, onceward.Call{Key: k("D")}, onceward.ErrScopeMissing},
			"single tenant":           {&onceward.Options{SingleTenant: true}, onceward.Call{Key: k("E")}, nil},
			"single tenant, no key":   {&onceward.Options{SingleTenant: true}, onceward.Call{}, onceward.ErrKeyMissing},
			"nothing, and a zero key": {nil, onceward.Call{Key: key.Key{}}, onceward.ErrKeyMissing},
		} {
			g, err := onceward.New(w.stores[0], c.opts)
			if err != nil {
				w.Fatal(err)
			}
			op, err := g.Define(onceward.Operation{Name: "x"})
			if err != nil {
				w.Fatal(err)
			}
			for range 2 {
				v, err := onceward.Do(w.Context(), op, c.call, func(context.Context) (string, error) {
					w.ledger.Add(name)
					return "paid by " + name, nil
				})
				if c.want == nil && (err != nil || v != "paid by "+name) || c.want != nil && !errors.Is(err, c.want) {
					w.Errorf("%s: %q %v", name, v, err)
				}
			}
			runs := 1
			if c.want != nil {
				runs = 0
			}
			w.wantRuns(name, runs)
			if lost, err := g.Close(w.Context()); lost != 0 || err != nil {
				w.Errorf("%s: %d %v", name, lost, err)
			}
		}
	})
}

// exactly returns n bytes that are n/4 runes, where columns that count characters, or know only short ones, show.
func exactly(n int) string { return strings.Repeat("\U0001F600", n/4) + strings.Repeat("x", n%4) }

// TestCaseB068OneLimit: text of exactly the limit comes back as it was, and one byte more is the same error on every store,
// with no row written.
func TestCaseB068OneLimit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		p := w.processOn(w.stores[0], onceward.Operation{Name: strings.Repeat("o", driver.MaxOperation)}, onceward.Options{})
		if _, err := p.Define(onceward.Operation{Name: strings.Repeat("o", driver.MaxOperation+1)}); err == nil {
			w.Error("a longer operation was taken")
		}
		longest := strings.Repeat("k", driver.MaxKey)
		if _, err := key.Parse(longest + "k"); !errors.Is(err, key.ErrTooLong) {
			w.Errorf("a longer key: %v", err)
		}
		part := exactly(driver.MaxScopePart)
		full := onceward.Scope{Namespace: part, Tenant: part, Caller: part}
		text := exactly(driver.MaxError)
		no := func(text string) func(context.Context) ([]byte, error) {
			return func(context.Context) ([]byte, error) {
				w.ledger.Add(text)
				return nil, onceward.Final(errors.New(text))
			}
		}
		for range 2 {
			var final *onceward.FinalError
			_, err := onceward.Do(w.Context(), p.op, onceward.Call{Scope: full, Key: k(longest)}, no(text))
			if !errors.As(err, &final) || final.Text != text {
				w.Errorf("at the limit: %v", err)
			}
			// A longer error is cut at a rune, on the first run too.
			_, err = onceward.Do(w.Context(), p.op, onceward.Call{Scope: full, Key: k("longer error")}, no("x"+text))
			if !errors.As(err, &final) || final.Text != "x"+text[:len(text)-4] {
				w.Errorf("above the limit: %v", err)
			}
		}
		w.wantRuns(text, 1)
		w.wantRuns("x"+text, 1)
		snap, err := w.stores[1].Get(w.Context(), driver.Identify(full, p.op.Name(), longest))
		if r := &snap.Record; err != nil || r.Key != longest || r.Scope != full || r.Operation != p.op.Name() || r.Error != text {
			w.Errorf("read back: %+v %v", r, err)
		}
		for name, s := range map[string]onceward.Scope{
			"namespace": {Namespace: part + "x"}, "tenant": {Tenant: part + "x"}, "caller": {Caller: part + "x"},
		} {
			_, err := onceward.Do(w.Context(), p.op, onceward.Call{Scope: s, Key: k(longest)}, no(name))
			if !errors.Is(err, onceward.ErrKeyInvalid) || !errors.Is(err, driver.ErrTooLong) || !strings.Contains(err.Error(), name) {
				w.Errorf("%s: %v", name, err)
			}
			if _, err := w.stores[1].Get(w.Context(), driver.Identify(s, p.op.Name(), longest)); !errors.Is(err, driver.ErrNotFound) {
				w.Errorf("%s left a record: %v", name, err)
			}
			w.wantRuns(name, 0)
		}
	})
}
