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
	"github.com/onceward/onceward/store/faultstore"
)

// TestUnrecordedResult: the claim is kept and the write goes on, with heartbeats, until the store is back.
func TestUnrecordedResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Repeatable: true})
		other := newDeskOn(t, d.mem, onceward.Operation{Repeatable: true})
		d.store.Refuse(faultstore.Finish, -1)
		start := time.Now()
		v, info, err := d.pay(t.Context(), "K", paid)
		if v != "paid" || err != nil || info.Recorded || time.Since(start) < 4*time.Second || d.count(onceward.EventUnrecorded) != 1 {
			t.Fatalf("%q %+v %v after %v", v, info, err, time.Since(start))
		}
		pass(20 * time.Minute) // longer than the attempt's timeout, which is over with the work
		for _, desk := range []*desk{d, other} {
			if _, _, err := desk.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrInFlight) {
				t.Errorf("meanwhile: %v", err)
			}
		}
		d.store.Refuse(faultstore.Finish, 0)
		pass(2 * time.Second)
		if v, info, err := other.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("afterwards: %q %+v %v", v, info, err)
		}
		if lost, err := d.Close(t.Context()); lost != 0 || err != nil {
			t.Errorf("close: %d %v", lost, err)
		}
		d.ledger.WantOnce(t, "K")
	})
}

func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		d.store.Refuse(faultstore.Finish, -1)
		for i := range 3 { // places for two
			if _, info, err := d.pay(t.Context(), fmt.Sprint("K", i), paid); err != nil || info.Recorded {
				t.Fatalf("%+v %v", info, err)
			}
		}
		if n := d.count(onceward.EventGivenUp); n != 1 {
			t.Errorf("%d were given up for want of a place", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if lost, err := d.Close(ctx); lost != 2 || err == nil {
			t.Errorf("close: %d %v", lost, err)
		}
		if _, _, err := d.pay(t.Context(), "other", paid); !errors.Is(err, onceward.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}

func TestCloseWaitsForTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, info, err := d.pay(t.Context(), "K", func(context.Context) (string, error) { pass(time.Minute); return "paid", nil }); err != nil || !info.Recorded {
				t.Errorf("%+v %v", info, err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if lost, err := d.Close(t.Context()); lost != 0 || err != nil || time.Since(start) != time.Minute {
			t.Errorf("close: %d %v after %v", lost, err, time.Since(start))
		}
		wg.Wait()
	})
}

func TestLostRepliesRunOnce(t *testing.T) {
	t.Parallel()
	for _, call := range []faultstore.Call{faultstore.Claim, faultstore.Finish} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, onceward.Operation{})
			d.store.Lose(call, 2)
			v, info, err := d.pay(t.Context(), "K", paid)
			if v != "paid" || err != nil || !info.Recorded || info.Attempt != 1 {
				t.Errorf("%s: %q %+v %v", call, v, info, err)
			}
			if _, info, err := d.pay(t.Context(), "K", paid); err != nil || info.Kind != onceward.KindReplay {
				t.Errorf("%s: %+v %v", call, info, err)
			}
			d.ledger.WantOnce(t, "K")
		})
	}
}

// TestStoreDownRunsNothing, and a claim that was made without our knowing is given back.
func TestStoreDownRunsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		d.store.Lose(faultstore.Claim, -1)
		if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrStoreUnavailable) || d.ledger.Count("K") != 0 {
			t.Fatalf("%v", err)
		}
		d.store.Lose(faultstore.Claim, 0)
		pass(5 * time.Second)
		if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Attempt != 2 {
			t.Errorf("afterwards: %q %+v %v", v, info, err)
		}
		d.ledger.WantOnce(t, "K")
		_, _ = d.Close(t.Context())
	})
}

func TestOpenRunsUnguarded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{OnStoreDown: onceward.Open, Repeatable: true})
		d.store.Refuse(faultstore.Claim, -1)
		if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || !info.Bypassed || info.Recorded || d.count(onceward.EventBypassed) != 1 {
			t.Errorf("%q %+v %v", v, info, err)
		}
		if _, err := d.Define(onceward.Operation{Name: "x", OnStoreDown: onceward.Open}); err == nil {
			t.Error("Open without Repeatable was taken")
		}
	})
}
