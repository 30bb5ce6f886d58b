package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncetest"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

// slow is work that takes d of the bubble's time.
func slow(d time.Duration) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { pass(d); return "paid", nil }
}

// refusals counts ErrInFlight and reports any other error.
func refusals(t *testing.T, errs []error) (n int) {
	t.Helper()
	for _, err := range errs {
		if errors.Is(err, onceward.ErrInFlight) {
			n++
		} else if err != nil {
			t.Error(err)
		}
	}
	return n
}

// TestCaseB001StormOverTwoProcesses: 200 callers of one key in two processes, one run, and the rest get its result.
func TestCaseB001StormOverTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		o := onceward.Operation{OnInFlight: onceward.Wait(time.Minute)}
		desks := []*desk{newDeskOn(t, mem, o), newDeskOn(t, mem, o)}
		errs := oncetest.Storm(t, func(i int) error {
			v, _, err := desks[i%2].pay(t.Context(), "K", slow(time.Second))
			if err == nil && v != "paid" {
				err = fmt.Errorf("got %q", v)
			}
			return err
		}, 200)
		// The process that runs has its runner and 64 who wait, the other has 64 who wait.
		if n := refusals(t, errs); n != 200-65-64 {
			t.Errorf("%d were refused", n)
		}
		if n := desks[0].ledger.Count("K") + desks[1].ledger.Count("K"); n != 1 {
			t.Errorf("ran %d times", n)
		}
		for _, d := range desks {
			if n := d.InAir(); n != 0 {
				t.Errorf("%d flights are left", n)
			}
		}
	})
}

// TestWaitersForAnotherProcessAreBounded: waiting for a foreign attempt is waiting too.
func TestWaitersForAnotherProcessAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		a := newDeskOn(t, mem, onceward.Operation{})
		b := newDeskOn(t, mem, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = a.pay(t.Context(), "K", slow(10*time.Second)) })
		synctest.Wait()
		errs := oncetest.Storm(t, func(int) error {
			start := time.Now()
			_, info, err := b.pay(t.Context(), "K", paid)
			if err != nil && (time.Since(start) != 0 || info.RetryAfter != time.Second) {
				err = fmt.Errorf("refused after %v with %+v", time.Since(start), info)
			}
			return err
		}, 100)
		wg.Wait()
		if n := refusals(t, errs); n != 36 {
			t.Errorf("%d were refused", n)
		}
		if n := b.ledger.Count("K"); n != 0 {
			t.Errorf("ran %d times", n)
		}
	})
}

func TestWaitersOfAProcessAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		const keys = 17
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() { _, _, _ = d.pay(t.Context(), fmt.Sprint("K", i), slow(10*time.Second)) })
		}
		synctest.Wait()
		errs := oncetest.Storm(t, func(i int) error {
			_, _, err := d.pay(t.Context(), fmt.Sprint("K", i%keys), paid)
			return err
		}, 64*keys)
		wg.Wait()
		if n := refusals(t, errs); n != 64*keys-1024 {
			t.Errorf("%d were refused", n)
		}
		// The places are free again.
		wg.Go(func() { _, _, _ = d.pay(t.Context(), "again", slow(time.Second)) })
		synctest.Wait()
		if v, _, err := d.pay(t.Context(), "again", paid); v != "paid" || err != nil {
			t.Errorf("afterwards: %q %v", v, err)
		}
		wg.Wait()
	})
}

func TestWaitEndsWithItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		o := onceward.Operation{OnInFlight: onceward.Wait(3 * time.Second)}
		a, b := newDeskOn(t, mem, o), newDeskOn(t, mem, o)
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = a.pay(t.Context(), "K", slow(20*time.Second)) })
		synctest.Wait()
		for name, d := range map[string]*desk{"same process": a, "other process": b} {
			start := time.Now()
			if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrInFlight) || time.Since(start) != 3*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start = time.Now()
			if _, _, err := d.pay(ctx, "K", paid); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("%s, own deadline: %v after %v", name, err, time.Since(start))
			}
			cancel()
		}
		wg.Wait()
	})
}

// TestCaseB005ResultIsThereWhenTheClaimEnds: a slow write of the result lets no waiter run.
func TestCaseB005ResultIsThereWhenTheClaimEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		o := onceward.Operation{OnInFlight: onceward.Wait(2 * time.Second), Repeatable: true}
		a, b := newDeskOn(t, mem, o), newDeskOn(t, mem, o)
		release := a.store.Hold(faultstore.Finish)
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = a.pay(t.Context(), "K", slow(50*time.Millisecond)) })
		pass(60 * time.Millisecond)
		for _, d := range []*desk{a, b} {
			wg.Go(func() {
				if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Kind != onceward.KindReplay {
					t.Errorf("%q %+v %v", v, info, err)
				}
			})
		}
		pass(200 * time.Millisecond)
		release()
		wg.Wait()
		if n := a.ledger.Count("K") + b.ledger.Count("K"); n != 1 {
			t.Errorf("ran %d times", n)
		}
	})
}

// TestCaseB007AnotherRequestIsRefusedBeforeItRuns, at once and without asking the store once the key is known.
func TestCaseB007AnotherRequestIsRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		o := onceward.Operation{OnInFlight: onceward.Wait(time.Minute)}
		a, b := newDeskOn(t, mem, o), newDeskOn(t, mem, o)
		other := func(d *desk) error {
			_, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K"), Request: 8}, func(context.Context) (string, error) {
				t.Error("the other request ran")
				return "", nil
			})
			return err
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = a.pay(t.Context(), "K", slow(10*time.Second)) })
		synctest.Wait()
		start := time.Now()
		if err := other(b); !errors.Is(err, onceward.ErrMismatch) { // asks the store
			t.Errorf("other process: %v", err)
		}
		wg.Go(func() { _, _, _ = b.pay(t.Context(), "K", paid) }) // waits for the other process
		synctest.Wait()
		claims := a.store.Count(faultstore.Claim) + b.store.Count(faultstore.Claim)
		for name, d := range map[string]*desk{"same process": a, "other process": b} {
			if err := other(d); !errors.Is(err, onceward.ErrMismatch) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := a.store.Count(faultstore.Claim) + b.store.Count(faultstore.Claim); n != claims || time.Since(start) != 0 {
			t.Errorf("%d more claims, %v", n-claims, time.Since(start))
		}
		wg.Wait()
		if v, info, err := b.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("the first lost its record: %q %+v %v", v, info, err)
		}
	})
}

// TestWaiterForAnotherProcessBecomesTheRunner: when nothing happened there, one of those who wait here runs.
func TestWaiterForAnotherProcessBecomesTheRunner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		o := onceward.Operation{OnInFlight: onceward.Wait(time.Minute)}
		a, b := newDeskOn(t, mem, o), newDeskOn(t, mem, o)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = a.pay(t.Context(), "K", func(context.Context) (string, error) { pass(5 * time.Second); return "", errors.New("busy") })
		})
		synctest.Wait()
		errs := oncetest.Storm(t, func(i int) error {
			if i == 64 { // one leaves its place when it becomes the runner
				pass(7 * time.Second)
			}
			v, _, err := b.pay(t.Context(), "K", slow(5*time.Second))
			if err == nil && v != "paid" {
				err = fmt.Errorf("%q", v)
			}
			return err
		}, 65)
		wg.Wait()
		if n := refusals(t, errs); n != 0 {
			t.Errorf("%d were refused", n)
		}
		b.ledger.WantOnce(t, "K")
	})
}

// TestFollowerIsNoLessPatientThanItsLeader: who came later waits longer.
func TestFollowerIsNoLessPatientThanItsLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		o := onceward.Operation{OnInFlight: onceward.Wait(3 * time.Second)}
		a, b := newDeskOn(t, mem, o), newDeskOn(t, mem, o)
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = a.pay(t.Context(), "K", slow(5*time.Second)) })
		synctest.Wait()
		wg.Go(func() {
			if _, _, err := b.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrInFlight) {
				t.Errorf("the leader: %v", err)
			}
		})
		pass(2500 * time.Millisecond)
		if v, _, err := b.pay(t.Context(), "K", paid); v != "paid" || err != nil {
			t.Errorf("the follower: %q %v", v, err)
		}
		wg.Wait()
	})
}

// TestWaiterThatLeavesFreesItsPlace; and those who stay get the answer, an unknown one too, without asking the store.
func TestWaiterThatLeavesFreesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = d.pay(t.Context(), "K", func(context.Context) (string, error) {
				pass(10 * time.Second)
				return "", onceward.Unknown(errNoMoney)
			})
		})
		synctest.Wait()
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			for _, err := range oncetest.Storm(t, func(int) error { _, _, err := d.pay(ctx, "K", paid); return err }, 64) {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
			}
			cancel()
		}
		for _, err := range oncetest.Storm(t, func(int) error { _, _, err := d.pay(t.Context(), "K", paid); return err }, 64) {
			if !errors.Is(err, onceward.ErrUnknown) {
				t.Errorf("%v", err)
			}
		}
		wg.Wait()
		if n := d.store.Count(faultstore.Claim); n != 1 {
			t.Errorf("%d claims", n)
		}
	})
}

// TestCaseB065NothingIsRememberedAfterTheEnd, whatever the end was.
func TestCaseB065NothingIsRememberedAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Timeout: time.Minute})
		ends := []func(context.Context) (string, error){
			paid, slow(time.Second), slow(2 * time.Minute),
			func(context.Context) (string, error) { return "", errors.New("busy") },
			func(context.Context) (string, error) { return "", onceward.Final(errors.New("no")) },
			func(context.Context) (string, error) { return "", onceward.Unknown(errors.New("lost")) },
			func(context.Context) (string, error) { panic("broken") },
		}
		oncetest.Storm(t, func(i int) error {
			defer func() { _ = recover() }()
			_, _, err := d.pay(t.Context(), fmt.Sprint("K", i%100), ends[i%len(ends)])
			return err
		}, 300)
		d.store.Refuse(faultstore.Claim, -1)
		_, _, _ = d.pay(t.Context(), "down", paid)
		d.store.Refuse(faultstore.Claim, 0)
		if lost, err := d.Close(t.Context()); lost != 0 || err != nil {
			t.Errorf("%d %v", lost, err)
		}
		if n := d.InAir(); n != 0 {
			t.Errorf("%d flights are left", n)
		}
	})
}
