package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncetest"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a guard over a faulty store, with an operation.
type desk struct {
	*onceward.Guard
	op     *onceward.Op
	store  *faultstore.Store
	mem    *memstore.Store
	ledger oncetest.Ledger
	mu     sync.Mutex
	events []onceward.Event
}

func newDesk(t *testing.T, o onceward.Operation) *desk {
	t.Helper()
	return newDeskOn(t, memstore.New(nil), o)
}

func newDeskOn(t *testing.T, mem *memstore.Store, o onceward.Operation) *desk {
	t.Helper()
	d := &desk{mem: mem, store: faultstore.New(mem)}
	g, err := onceward.New(d.store, &onceward.Options{
		SingleTenant: true, Logger: slog.New(slog.DiscardHandler), MaxUnrecorded: 2,
		Observer: func(e onceward.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.events = append(d.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if o.Name == "" {
		o.Name = "pay"
	}
	d.Guard = g
	if d.op, err = g.Define(o); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) count(k onceward.EventKind) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

func k(text string) key.Key {
	parsed, err := key.Parse(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// pay runs work under the key, counting its runs.
func (d *desk) pay(ctx context.Context, keyText string, work func(ctx context.Context) (string, error)) (string, onceward.Info, error) {
	var info onceward.Info
	v, err := onceward.Do(ctx, d.op, onceward.Call{Key: k(keyText), Request: 7, Info: &info}, func(ctx context.Context) (string, error) {
		d.ledger.Add(keyText)
		return work(ctx)
	})
	return v, info, err
}

// pass lets time pass, in the bubble of synctest, where no real time does.
func pass(d time.Duration) { <-time.After(d) }

func paid(context.Context) (string, error) { return "paid", nil }

func TestStormCostsTwoStoreCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		errs := oncetest.Storm(t, func(int) error {
			v, _, err := d.pay(t.Context(), "K", func(context.Context) (string, error) {
				pass(time.Second) // in the bubble's time
				return "paid", nil
			})
			if err == nil && v != "paid" {
				err = fmt.Errorf("got %q", v)
			}
			return err
		}, 60)
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		d.ledger.WantOnce(t, "K")
		if c, f := d.store.Count(faultstore.Claim), d.store.Count(faultstore.Finish); c != 1 || f != 1 {
			t.Errorf("%d claims and %d finishes", c, f)
		}
	})
}

func TestInFlightConflictAndMismatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			pass(5 * time.Second)
			_, info, err := d.pay(ctx, "K", paid)
			if !errors.Is(err, onceward.ErrInFlight) || info.RetryAfter < time.Second || info.RetryAfter > onceward.DefaultLease {
				t.Errorf("a duplicate: %v %+v", err, info)
			}
			_, err = onceward.Do(ctx, d.op, onceward.Call{Key: k("K"), Request: 8}, paid)
			if !errors.Is(err, onceward.ErrMismatch) {
				t.Errorf("another request: %v", err)
			}
			return "paid", nil
		})
		if err != nil || d.store.Count(faultstore.Claim) != 1 {
			t.Errorf("%v, %d claims", err, d.store.Count(faultstore.Claim))
		}
	})
}

func TestWaitersOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = d.pay(t.Context(), "K", func(context.Context) (string, error) { pass(10 * time.Second); return "paid", nil })
		})
		synctest.Wait()
		errs := oncetest.Storm(t, func(int) error { _, _, err := d.pay(t.Context(), "K", paid); return err }, 100)
		wg.Wait()
		refused := 0
		for _, err := range errs {
			if errors.Is(err, onceward.ErrInFlight) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != 36 {
			t.Errorf("%d were refused", refused)
		}
		d.ledger.WantOnce(t, "K")
	})
}

// TestCaseB005WaiterBecomesRunnerOnlyWhenNothingHappened.
func TestCaseB005WaiterBecomesRunner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, err := d.pay(t.Context(), "K", func(context.Context) (string, error) {
				pass(time.Second)
				return "", errors.New("busy")
			})
			if err == nil {
				t.Error("the first succeeded")
			}
		})
		synctest.Wait()
		if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Attempt != 2 {
			t.Errorf("the waiter: %q %+v %v", v, info, err)
		}
		wg.Wait()
		if n := d.ledger.Count("K"); n != 2 {
			t.Errorf("ran %d times", n)
		}
	})
}

// TestTwoGuardsAreTwoProcesses: a foreign attempt is waited for by reading, and replayed.
func TestTwoGuardsAreTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		a := newDeskOn(t, mem, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		b := newDeskOn(t, mem, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = a.pay(t.Context(), "K", func(context.Context) (string, error) { pass(10 * time.Second); return "paid", nil })
		})
		synctest.Wait()
		errs := oncetest.Storm(t, func(int) error {
			v, info, err := b.pay(t.Context(), "K", paid)
			if err == nil && (v != "paid" || info.Kind != onceward.KindReplay) {
				err = fmt.Errorf("%q %+v", v, info)
			}
			return err
		}, 20)
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		// 50 ms doubling to a second, over ten seconds: one read for all of the key's waiters.
		if n := b.store.Count(faultstore.Claim); n > 20 || b.ledger.Count("K") != 0 {
			t.Errorf("%d claims, %d runs", n, b.ledger.Count("K"))
		}
	})
}

func TestLeaderThatLeavesDoesNotFailFollowers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		a := newDeskOn(t, mem, onceward.Operation{})
		b := newDeskOn(t, mem, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = a.pay(t.Context(), "K", func(context.Context) (string, error) { pass(10 * time.Second); return "paid", nil })
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, _, err := b.pay(ctx, "K", paid); !errors.Is(err, context.Canceled) {
				t.Errorf("the leader: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, _, err := b.pay(t.Context(), "K", paid); v != "paid" || err != nil {
				t.Errorf("the follower: %q %v", v, err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

// TestCaseB011NoStartWithoutTime: a caller whose time is over starts nothing.
func TestCaseB011NoStartWithoutTime(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	for _, left := range []time.Duration{0, -5 * time.Millisecond} {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(left))
		_, _, err := d.pay(ctx, "K", paid)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %v", left, err)
		}
	}
	if d.ledger.Count("K") != 0 || d.store.Count(faultstore.Claim) != 0 {
		t.Error("something was started")
	}
}

func TestCallerGoneDoesNotCancelTheWork(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	ctx, hangUp := context.WithCancel(t.Context())
	v, _, err := d.pay(ctx, "K", func(ctx context.Context) (string, error) {
		hangUp()
		<-onceward.CallerGone(ctx)
		return "paid", ctx.Err()
	})
	if v != "paid" || err != nil {
		t.Fatalf("%q %v", v, err)
	}
	if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Kind != onceward.KindReplay {
		t.Fatalf("%q %+v %v", v, info, err)
	}
}

// TestCaseB016HeartbeatKeepsALongJob: five minutes of work under a lease of 30 s are never taken over.
func TestCaseB016HeartbeatKeepsALongJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		d := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		other := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		v, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			for range 60 {
				pass(5 * time.Second)
				if _, _, err := other.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrInFlight) || ctx.Err() != nil {
					t.Fatalf("%v, %v", err, ctx.Err())
				}
			}
			return "paid", nil
		})
		if v != "paid" || err != nil || other.ledger.Count("K") != 0 {
			t.Fatalf("%q %v", v, err)
		}
		if n := d.store.Count(faultstore.Renew); n < 25 || n > 35 {
			t.Errorf("%d heartbeats", n)
		}
	})
}

// TestStoreAwayCancelsTheWork: a margin before the lease ends, even when the store hangs.
func TestStoreAwayCancelsTheWork(t *testing.T) {
	t.Parallel()
	for _, hang := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, onceward.Operation{})
			if hang {
				defer d.store.Hold(faultstore.Renew)()
			} else {
				d.store.Refuse(faultstore.Renew, -1)
			}
			start := time.Now()
			v, info, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				if at := time.Since(start); at != 25*time.Second || !errors.Is(context.Cause(ctx), onceward.ErrLeaseLost) {
					t.Errorf("cancelled after %v by %v", at, context.Cause(ctx))
				}
				return "late", nil
			})
			// Nobody came meanwhile: late truth is taken.
			if v != "late" || err != nil || !info.Recorded || d.count(onceward.EventLeaseLost) != 1 {
				t.Errorf("%q %+v %v", v, info, err)
			}
		})
	}
}

func TestLateTruthIsSuperseded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		d := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		other := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		d.store.Refuse(faultstore.Renew, -1)
		v, info, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			pass(time.Minute)
			if v, info, err := other.pay(t.Context(), "K", func(context.Context) (string, error) { return "winner", nil }); v != "winner" || err != nil || !info.Takeover {
				t.Errorf("the takeover: %q %+v %v", v, info, err)
			}
			return "late", nil
		})
		if v != "winner" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("the late one: %q %+v %v", v, info, err)
		}
	})
}

func TestTimeoutCancelsTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Timeout: time.Minute})
		start := time.Now()
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			if at, ok := ctx.Deadline(); !ok || at.Sub(start) != time.Minute {
				t.Errorf("deadline %v", at)
			}
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("%v after %v", ctx.Err(), time.Since(start))
			}
			return "", ctx.Err()
		})
		if !errors.Is(err, onceward.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("a duplicate: %v", err)
		}
		d.ledger.WantOnce(t, "K")
	})
}
