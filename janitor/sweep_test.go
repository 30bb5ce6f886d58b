package janitor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

func claimOf(text string, lapse driver.OnLapse) driver.Claim {
	c := driver.Claim{Operation: "pay", Key: text, Owner: driver.Owner{1}, Lease: time.Minute, Timeout: time.Minute, Retention: time.Hour, MaxAttempts: 5, OnLapse: lapse}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	return c
}

func TestSweepSettlesTheDead(t *testing.T) {
	t.Parallel()
	s := memstore.New(nil)
	for i := range 30 {
		lapse := driver.LapseUnknown
		if i%3 == 0 {
			lapse = driver.LapseRepeat
		}
		c := claimOf(fmt.Sprint("k", i), lapse)
		if _, err := s.Claim(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if i < 20 {
			s.Shift(c.ID, 2*time.Minute)
		}
	}
	rep, err := janitor.Sweep(t.Context(), s, &janitor.Options{Page: 7, Pause: time.Nanosecond})
	if err != nil || rep.Seen != 30 || rep.Processing != 10 || rep.Repeatable != 7 || rep.Unclear != 13 || rep.Unknown != 13 {
		t.Fatalf("%+v %v", rep, err)
	}
	rep, err = janitor.Sweep(t.Context(), s, nil)
	if err != nil || rep.Repeatable != 0 || rep.Unclear != 0 || rep.Unknown != 13 || rep.Processing != 10 {
		t.Fatalf("a second sweep: %+v %v", rep, err)
	}
}

// TestCaseB019SweepNeverTouchesTheLiving: half a minute of sweeps beside work that takes as long as a quarter of its lease.
func TestCaseB019SweepNeverTouchesTheLiving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		g, err := onceward.New(s, &onceward.Options{SingleTenant: true})
		if err != nil {
			t.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "pay", Lease: 200 * time.Millisecond, Repeatable: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		var work, runs sync.WaitGroup
		var ran atomic.Int64
		keys := 0
		var mu sync.Mutex
		for worker := range 20 {
			work.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					k, _ := key.Compose("w", worker, n)
					mu.Lock()
					keys++
					mu.Unlock()
					_, err := onceward.Do(t.Context(), op, onceward.Call{Key: k}, func(context.Context) (int, error) {
						ran.Add(1)
						<-time.After(50*time.Millisecond + time.Duration(n%5)*100*time.Millisecond) // some outlive their first lease
						return n, nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		runs.Go(func() {
			for ctx.Err() == nil {
				rep, err := janitor.Sweep(t.Context(), s, nil)
				if err != nil || rep.Repeatable+rep.Unclear > 0 {
					t.Errorf("%+v %v", rep, err)
				}
				<-time.After(time.Millisecond)
			}
		})
		work.Wait()
		runs.Wait()
		if ran.Load() != int64(keys) || keys == 0 {
			t.Errorf("%d keys, %d runs", keys, ran.Load())
		}
	})
}

// gone answers for one record as if it had ended and been purged since the page was read.
type gone struct {
	*memstore.Store
	id driver.ID
}

func (g *gone) Settle(ctx context.Context, s driver.Settlement) (driver.Settled, error) {
	if s.ID == g.id {
		return driver.Settled{}, driver.ErrNotFound
	}
	return g.Store.Settle(ctx, s)
}

// TestSweepGoesOn: a record that is gone by the time it is settled does not keep the others from it.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	s := memstore.New(nil)
	for i := range 10 {
		c := claimOf(fmt.Sprint("k", i), driver.LapseUnknown)
		if _, err := s.Claim(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s.Shift(c.ID, 2*time.Minute)
	}
	rep, err := janitor.Sweep(t.Context(), &gone{s, claimOf("k3", driver.LapseUnknown).ID}, nil)
	if err != nil || rep.Unclear != 9 {
		t.Errorf("%+v %v", rep, err)
	}
}
