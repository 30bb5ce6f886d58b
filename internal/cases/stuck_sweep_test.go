package cases

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/store/faultstore"
)

// TestCaseB016TheDeadAreFoundByTheirLease, not by the age of their record.
func TestCaseB016TheDeadAreFoundByTheirLease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		o := onceward.Operation{Repeatable: true} // 30 s, and its grace of 10 s
		w.leaveDead("K", o)
		p := w.process(o)
		for _, passed := range []time.Duration{29 * time.Second, 2 * time.Second} { // within the lease, and within the grace
			w.shift("K", passed)
			w.wantRefused(onceward.ErrInFlight, p.pay("K", nil))
			if rep := w.sweep(); rep.Processing != 1 || rep.Repeatable+rep.Unclear != 0 {
				w.Errorf("%+v", rep)
			}
		}
		w.shift("K", 9*time.Second)
		a := p.pay("K", nil)
		w.wantRun(2, a)
		if !a.info.Takeover {
			w.Errorf("%v", a)
		}
		w.wantRuns("K", 1)
	})
}

// TestCaseB018ObedientClientGetsThrough: who honours the hint after a crash runs soon after the lease.
func TestCaseB018ObedientClientGetsThrough(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		o := onceward.Operation{Repeatable: true}
		w.leaveDead("K", o)
		p := w.process(o)
		var waited time.Duration
		for conflicts := 0; ; conflicts++ {
			a := p.pay("K", nil)
			if a.err == nil {
				w.wantRun(2, a)
				break
			}
			w.wantRefused(onceward.ErrInFlight, a)
			hint := a.info.RetryAfter
			if left := onceward.DefaultLease - waited; hint < time.Second || hint > max(left, time.Second) || conflicts > 16 {
				w.Fatalf("conflict %d after %v: retry after %v", conflicts, waited, hint)
			}
			waited += hint
			w.shift("K", hint)
		}
		if waited > onceward.DefaultLease*4/3+time.Second {
			w.Errorf("it took %v", waited)
		}
		w.wantRuns("K", 1)
	})
}

// TestCaseB016B019LiveWorkIsLeftAlone: two processes sweep without a pause beside 20 who work, under leases that are fresh,
// that are over but for their grace, and that heartbeats renew for longer than one lasts, while others ask for their keys.
// The sweeps settle the dead among them, once each.
func TestCaseB016B019LiveWorkIsLeftAlone(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		long := onceward.Operation{Repeatable: true, Lease: time.Hour}
		beating := onceward.Operation{Repeatable: true, Lease: 2 * time.Second} // time enough between heartbeats for a slow machine
		dead := w.process(long)
		for i := range 20 {
			dead.begin(fmt.Sprint("dead", i))
		}
		dead.die()
		for i := range 20 {
			w.shift(fmt.Sprint("dead", i), 2*time.Hour)
		}
		ctx, stop := context.WithCancel(w.Context())
		var work, sweeps sync.WaitGroup
		var settled, swept atomic.Int64
		for range 2 {
			sweeps.Go(func() {
				for ctx.Err() == nil {
					rep := w.sweep()
					settled.Add(int64(rep.Repeatable + rep.Unclear))
					swept.Add(1)
				}
			})
		}
		done := make(chan struct{}) // by those who send heartbeats
		for i, p := range w.processes(2, long) {
			for n := range 8 {
				keyText := fmt.Sprint("long", i, n)
				held := make(chan struct{})
				work.Go(func() {
					w.wantRun(1, p.pay(keyText, func(context.Context) error { close(held); <-done; return nil }))
				})
				w.wait(held)
				if n%4 == 0 {
					w.shift(keyText, 61*time.Minute)
				}
			}
		}
		ps := w.processes(2, beating)
		var hearts sync.WaitGroup
		for i := range 4 {
			p, other, keyText := ps[i%2], ps[1-i%2], fmt.Sprint("beating", i)
			hearts.Go(func() {
				w.wantRun(1, p.pay(keyText, func(ctx context.Context) error {
					for beats := 2; ctx.Err() == nil && !w.outlived(keyText); beats += 2 { // one more of each of the process's two
						p.await(ctx, faultstore.Renew, beats)
						w.wantRefused(onceward.ErrInFlight, other.pay(keyText, nil))
					}
					return context.Cause(ctx)
				}))
			})
		}
		hearts.Wait()
		close(done)
		work.Wait()
		stop()
		sweeps.Wait()
		w.Logf("%d sweeps", swept.Load())
		if n := settled.Load(); n != 20 {
			w.Errorf("%d were settled, want the 20 dead once each", n)
		}
		for i := range 4 {
			w.wantRuns(fmt.Sprint("beating", i), 1)
		}
		for i := range 16 {
			w.wantRuns(fmt.Sprint("long", i/8, i%8), 1)
		}
		for i := range 20 {
			w.wantRun(2, ps[i%2].pay(fmt.Sprint("dead", i), nil))
		}
	})
}

// outlived reports whether a key is held longer than one lease and its grace last. Also true when nobody can tell.
func (w *world) outlived(keyText string) bool {
	snap, err := w.stores[0].Get(w.Context(), idOf(keyText))
	if err != nil {
		w.Error(err)
		return true
	}
	r := &snap.Record
	return r.Status != driver.Processing || snap.Now.Sub(r.CreatedAt) > r.Lease+r.Lease/3
}

// late is a store in which something happens between a sweep's look and its settlement.
type late struct {
	janitor.Store
	before func()
}

func (l *late) Settle(ctx context.Context, s driver.Settlement) (driver.Settled, error) {
	l.before()
	return l.Store.Settle(ctx, s)
}

// TestCaseB019SweeperIsLate: what a sweep saw is not what it settles by.
func TestCaseB019SweeperIsLate(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		s := w.sweeper()
		o := onceward.Operation{Repeatable: true}
		p := w.process(o)
		sweep := func(before func()) janitor.Report {
			rep, err := janitor.Sweep(w.Context(), &late{s, before}, nil)
			if err != nil {
				w.Error(err)
			}
			return rep
		}
		untouched := func(name string, rep janitor.Report) {
			if rep.Seen != 1 || rep.Repeatable+rep.Unclear != 0 {
				w.Errorf("%s: %+v", name, rep)
			}
		}

		// A lease that is over, and a grace that is not: the store says no.
		a := w.process(o)
		d := a.begin("K")
		w.shift("K", 31*time.Second)
		untouched("in its grace", sweep(func() {}))
		// Its claim is taken over meanwhile, and the new attempt even dies: the fence is another.
		a.die()
		w.shift("K", time.Minute)
		var second onceward.Decision
		untouched("taken over", sweep(func() {
			if second = p.begin("K"); second.Kind != onceward.KindRun || second.Number != 2 {
				w.Fatalf("%+v", second)
			}
			w.shift("K", time.Minute)
		}))
		if second.Attempt == nil {
			w.Fatal("the sweep settled nothing")
		}
		result := onceward.Result{Codec: "raw", Data: []byte("second")}
		if end, err := second.Attempt.Succeed(w.Context(), result); err != nil || !end.Recorded {
			w.Errorf("%+v %v", end, err)
		}
		if end, err := d.Attempt.Succeed(w.Context(), onceward.Result{Codec: "raw", Data: []byte("first")}); err != nil || !end.Superseded || string(end.Decision.Result.Data) != "second" {
			w.Errorf("late truth: %+v %v", end, err)
		}
		w.wantReplay(result.Data, p.pay("K", nil))
	})
}

// TestCaseB019SweptThenTrue: the end of an attempt that a sweep took for dead is taken, as long as nobody claimed.
func TestCaseB019SweptThenTrue(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		for _, repeatable := range []bool{false, true} {
			keyText := fmt.Sprint("repeatable ", repeatable)
			o := onceward.Operation{Repeatable: repeatable}
			a, b := w.process(o), w.process(o)
			first := a.pay(keyText, func(context.Context) error {
				w.shift(keyText, time.Minute)
				if rep := w.sweep(); rep.Repeatable+rep.Unclear != 1 {
					w.Errorf("%+v", rep)
				}
				return nil
			})
			w.wantRun(1, first)
			w.wantReplay(first.body, b.pay(keyText, nil))
			w.wantRuns(keyText, 1)
		}
	})
}
