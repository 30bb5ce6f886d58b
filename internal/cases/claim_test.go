package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/oncetest"
	"github.com/onceward/onceward/store/faultstore"
)

// TestCaseB001SecondClaimChangesNothing: of two store objects on the same data the one that comes later is refused, and
// leaves the record of the first as it is.
func TestCaseB001SecondClaimChangesNothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		a, b := w.process(onceward.Operation{}), w.process(onceward.Operation{})
		first := a.begin("K")
		if first.Kind != onceward.KindRun || first.Number != 1 {
			w.Fatalf("%+v", first)
		}
		before := w.record("K")
		if d := b.begin("K"); d.Kind != onceward.KindInFlight || d.RetryAfter < time.Second || d.RetryAfter > onceward.DefaultLease {
			w.Errorf("the second: %v, retry after %v", d.Kind, d.RetryAfter)
		}
		after := w.record("K")
		if after.Owner != before.Owner || after.Fence != before.Fence || after.Fence != first.Attempt.Fence() || !after.LeaseUntil.Equal(before.LeaseUntil) {
			w.Errorf("the record was %+v and is %+v", before, after)
		}
		result := onceward.Result{Codec: "raw", Data: []byte("first \x00\xff")}
		if end, err := first.Attempt.Succeed(w.Context(), result); err != nil || !end.Recorded {
			w.Errorf("the first lost its claim: %+v %v", end, err)
		}
		w.wantReplay(result.Data, b.pay("K", nil))
		w.wantRuns("K", 0)
	})
}

// TestCaseB001EachCallerAProcess: nothing but the store's own decision stands between callers of different processes.
func TestCaseB001EachCallerAProcess(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		const callers, keys = 8, 12
		ps := w.processes(callers, onceward.Operation{})
		for i := range keys {
			keyText := fmt.Sprint("K", i)
			winner := w.race(ps, keyText)
			if winner == nil {
				continue
			}
			if winner.Number != 1 || winner.Attempt.Takeover() || winner.Attempt.Fence() != w.record(keyText).Fence {
				w.Errorf("%s: %+v", keyText, winner)
			}
			result := onceward.Result{Codec: "raw", Data: []byte(keyText)}
			if end, err := winner.Attempt.Succeed(w.Context(), result); err != nil || !end.Recorded {
				w.Errorf("%s: %+v %v", keyText, end, err)
			}
			w.wantReplay(result.Data, ps[i%callers].pay(keyText, nil))
			w.wantRuns(keyText, 0)
		}
	})
}

func (w *world) processes(n int, o onceward.Operation) (ps []*process) {
	w.Helper()
	for range n {
		ps = append(ps, w.process(o))
	}
	return ps
}

// race lets all processes claim a key at once, and demands that exactly one of them gets it.
func (w *world) race(ps []*process, keyText string) (winner *onceward.Decision) {
	w.Helper()
	decisions := make([]onceward.Decision, len(ps))
	for _, err := range oncetest.Storm(w, func(i int) (err error) {
		decisions[i], err = ps[i].Begin(w.Context(), ps[i].op, onceward.Call{Key: k(keyText), Request: payments})
		return err
	}, len(ps)) {
		if err != nil {
			w.Errorf("%s: %v", keyText, err)
		}
	}
	for i, d := range decisions {
		switch {
		case d.Kind == onceward.KindRun && winner == nil:
			winner = &decisions[i]
		case d.Kind == onceward.KindRun:
			w.Errorf("%s has two owners", keyText)
			_, _ = d.Attempt.Fail(w.Context(), driver.Retryable, nil, onceward.Result{})
		case d.Kind != onceward.KindInFlight:
			w.Errorf("%s: %v", keyText, d.Kind)
		}
	}
	if winner == nil {
		w.Errorf("nobody got %s", keyText)
	}
	return winner
}

// TestCaseB001StormOnEveryStore: 50 callers in two processes. Those who do not wait get a conflict or the result, those
// who wait get the result, and it is the same bytes for all.
func TestCaseB001StormOnEveryStore(t *testing.T) {
	t.Parallel()
	const callers = 50
	onEveryStore(t, func(w *world) {
		ps := w.processes(2, onceward.Operation{})
		var arrived sync.WaitGroup // in the work, or answered without it
		arrived.Add(callers)
		answers := make([]answer, callers)
		storm := func(during func(caller int) error) func(int) error {
			return func(i int) error {
				ran := false
				answers[i] = ps[i%2].pay("conflict", func(context.Context) error {
					ran = true
					return during(i)
				})
				if !ran {
					arrived.Done()
				}
				return nil
			}
		}
		oncetest.Storm(w, storm(func(int) error { arrived.Done(); arrived.Wait(); return nil }), callers)
		var first []byte
		for _, a := range answers {
			if a.err == nil {
				first = a.body
			} else if !errors.Is(a.err, onceward.ErrInFlight) {
				w.Errorf("%v", a)
			}
		}
		w.wantRuns("conflict", 1)
		for _, p := range ps {
			w.wantReplay(first, p.pay("conflict", nil))
		}

		patient := w.processes(2, onceward.Operation{OnInFlight: onceward.Wait(patience)})
		oncetest.Storm(w, func(i int) error {
			answers[i] = patient[i%2].pay("wait", func(context.Context) error {
				for _, p := range patient {
					p.await(w.Context(), faultstore.Claim, 1) // the other process has come
				}
				return nil
			})
			return nil
		}, callers)
		for _, a := range answers {
			if a.err != nil || string(a.body) != string(answers[0].body) || len(a.body) == 0 {
				w.Errorf("%v, another got %q", a, answers[0].body)
			}
		}
		w.wantRuns("wait", 1)
	})
}

// TestCaseB003NoLeaseIsNotALapsedLease: a record that says nothing of its lease is held, however old it is, and whatever
// it says of its expiry.
func TestCaseB003NoLeaseIsNotALapsedLease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		o := onceward.Operation{Repeatable: true}
		for _, expires := range []time.Duration{0, time.Hour} {
			keyText := fmt.Sprint("expires ", expires)
			w.leaveDead(keyText, o)
			w.h.Edit(w, w.stores[0], idOf(keyText), func(r *driver.Record) {
				r.LeaseUntil = time.Time{}
				if expires > 0 {
					r.ExpiresAt = r.CreatedAt.Add(expires)
				}
			})
			ps := w.processes(2, o)
			for _, passed := range []time.Duration{0, 59 * time.Minute, 2 * time.Minute, 1000 * time.Hour} {
				w.shift(keyText, passed)
				for _, p := range ps {
					a := p.pay(keyText, nil)
					w.wantRefused(onceward.ErrInFlight, a)
					if a.info.RetryAfter != time.Second {
						w.Errorf("retry after %v", a.info.RetryAfter)
					}
				}
				if rep := w.sweep(); rep.Repeatable+rep.Unclear+rep.Unknown != 0 || rep.Processing != rep.Seen {
					w.Errorf("a sweep: %+v", rep)
				}
			}
			w.wantRuns(keyText, 0)
		}
	})
}

// TestCaseB003OneTakesOver: of those who race for a lease that is truly over one gets it.
func TestCaseB003OneTakesOver(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		o := onceward.Operation{Repeatable: true}
		ps := w.processes(6, o)
		for i := range 6 {
			keyText := fmt.Sprint("K", i)
			w.leaveDead(keyText, o)
			dead := w.record(keyText)
			w.shift(keyText, time.Minute)
			winner := w.race(ps, keyText)
			if winner == nil {
				continue
			}
			if r := w.record(keyText); winner.Number != 2 || !winner.Attempt.Takeover() || r.Fence != winner.Attempt.Fence() || r.Fence <= dead.Fence || r.Owner == dead.Owner {
				w.Errorf("%s: %+v, record %+v", keyText, winner, r)
			}
			if end, err := winner.Attempt.Succeed(w.Context(), onceward.Result{Codec: "raw", Data: []byte(keyText)}); err != nil || !end.Recorded {
				w.Errorf("%s: %+v %v", keyText, end, err)
			}
			w.wantReplay([]byte(keyText), ps[i%len(ps)].pay(keyText, nil))
			w.wantRuns(keyText, 0)
		}
	})
}

// stopped is a store whose first Finish of a key stops before, or after, it takes effect.
type stopped struct {
	driver.Store
	key     string
	after   bool
	first   sync.Once
	reached chan struct{}
	open    chan struct{}
}

func (w *world) stopped(keyText string, after bool) *stopped {
	return &stopped{Store: w.stores[0], key: keyText, after: after, reached: make(chan struct{}), open: make(chan struct{})}
}

func (s *stopped) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	stop := func() {
		if f.Claim.Key != s.key {
			return
		}
		s.first.Do(func() {
			close(s.reached)
			<-s.open
		})
	}
	if !s.after {
		stop()
	}
	reply, err := s.Store.Finish(ctx, f)
	stop()
	return reply, err
}

// TestCaseB005NoMomentBetweenClaimAndResult: a waiter sees the claim or the result, never neither.
func TestCaseB005NoMomentBetweenClaimAndResult(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		o := onceward.Operation{OnInFlight: onceward.Wait(patience), Repeatable: true}
		for _, after := range []bool{false, true} {
			keyText := fmt.Sprint("stopped after ", after)
			s := w.stopped(keyText, after)
			a, b := w.processOn(s, o, onceward.Options{SingleTenant: true}), w.processOn(w.stores[1], o, onceward.Options{SingleTenant: true})
			var first, same, other answer
			var wg sync.WaitGroup
			wg.Go(func() { first = a.pay(keyText, nil) })
			w.wait(s.reached)
			wg.Go(func() { same = a.pay(keyText, nil) })
			if after { // the result is there, though its writer does not know it yet
				other = b.pay(keyText, nil)
			} else {
				wg.Go(func() { other = b.pay(keyText, nil) })
				b.await(w.Context(), faultstore.Claim, 2) // asked, and asked again
			}
			close(s.open)
			wg.Wait()
			w.wantRun(1, first)
			w.wantReplay(first.body, same)
			w.wantReplay(first.body, other)
			w.wantRuns(keyText, 1)
		}
	})
}

// TestCaseB005WaiterBecomesTheRunner only when the first said that nothing happened.
func TestCaseB005WaiterBecomesTheRunner(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		ps := w.processes(2, onceward.Operation{OnInFlight: onceward.Wait(patience)})
		var second answer
		var wg sync.WaitGroup
		busy := errors.New("busy")
		first := ps[0].pay("K", func(context.Context) error {
			wg.Go(func() { second = ps[1].pay("K", nil) })
			ps[1].await(w.Context(), faultstore.Claim, 1)
			return busy
		})
		wg.Wait()
		if !errors.Is(first.err, busy) {
			w.Errorf("the first: %v", first)
		}
		w.wantRun(2, second)
		w.wantReplay(second.body, ps[0].pay("K", nil))
		w.wantRuns("K", 2)
	})
}

const refunds = "POST /refunds"

// TestCaseB007AnotherRequestIsRefusedBeforeItRuns, at once though the operation waits, in the same process and in another;
// while the first runs, when it has ended, and when it has died.
func TestCaseB007AnotherRequestIsRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		o := onceward.Operation{OnInFlight: onceward.Wait(patience)}
		ps := w.processes(2, o)
		refused := func(keyText string) {
			for _, p := range ps {
				a := p.do(w.Context(), keyText, refunds, nil)
				w.wantRefused(onceward.ErrMismatch, a)
				if a.info.Kind != onceward.KindMismatch || onceward.CodeOf(a.err).Retry() != onceward.RetryNewKey {
					w.Errorf("%v", a)
				}
			}
			w.wantRuns(refunds+" "+keyText, 0)
		}
		first := ps[0].pay("K", func(context.Context) error { refused("K"); return nil })
		w.wantRun(1, first)
		refused("K")
		for _, p := range ps {
			w.wantReplay(first.body, p.pay("K", nil))
		}
		w.wantRuns("K", 1)

		w.leaveDead("dead", onceward.Operation{Repeatable: true})
		w.shift("dead", time.Minute)
		refused("dead")
		w.wantRun(2, ps[0].pay("dead", nil))
	})
}

// TestCaseB007TheRecordIsTheRunners: of two requests that race on one key one runs, and keeps its record.
func TestCaseB007TheRecordIsTheRunners(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		ps, requests := w.processes(2, onceward.Operation{}), []string{payments, refunds}
		for n := range 10 {
			keyText := fmt.Sprint("K", n)
			answers := make([]answer, 2)
			oncetest.Storm(w, func(i int) error {
				answers[i] = ps[i].do(w.Context(), keyText, requests[i], nil)
				return nil
			}, 2)
			winner := slices.IndexFunc(answers, func(a answer) bool { return a.err == nil })
			if winner < 0 {
				w.Fatalf("nobody ran: %v", answers)
			}
			w.wantRun(1, answers[winner])
			w.wantRefused(onceward.ErrMismatch, answers[1-winner])
			w.wantReplay(answers[winner].body, ps[1-winner].do(w.Context(), keyText, requests[winner], nil))
			w.wantRefused(onceward.ErrMismatch, ps[winner].do(w.Context(), keyText, requests[1-winner], nil))
			w.wantRuns(keyText, 1)
		}
	})
}

// TestCaseB008RecoveryIsThePolicysChoice: what becomes of a dead attempt stands in its record since its claim, whatever
// the process that finds it would choose, and whether a caller or the janitor comes first.
func TestCaseB008RecoveryIsThePolicysChoice(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		for _, stored := range []bool{false, true} {
			for _, now := range []bool{false, true} {
				for _, swept := range []bool{false, true} {
					w.recovery(stored, now, swept)
				}
			}
		}
	})
}

func (w *world) recovery(stored, now, swept bool) {
	w.Helper()
	keyText := fmt.Sprintf("stored %v now %v swept %v", stored, now, swept)
	w.leaveDead(keyText, onceward.Operation{Repeatable: stored})
	p := w.process(onceward.Operation{Repeatable: now})
	w.wantRefused(onceward.ErrInFlight, p.pay(keyText, nil))
	w.shift(keyText, time.Minute)
	if swept {
		if rep := w.sweep(); stored && (rep.Repeatable != 1 || rep.Unclear != 0) || !stored && (rep.Repeatable != 0 || rep.Unclear != 1) {
			w.Errorf("%s: %+v", keyText, rep)
		}
	}
	if stored {
		a := p.pay(keyText, nil)
		w.wantRun(2, a)
		if a.info.Takeover == swept { // the janitor's end is no death of the attempt before
			w.Errorf("%s: %v", keyText, a)
		}
		w.wantReplay(a.body, p.pay(keyText, nil))
		w.wantRuns(keyText, 1)
		return
	}
	for _, passed := range []time.Duration{0, 1000 * time.Hour} { // it does not go away by itself
		w.shift(keyText, passed)
		a := p.pay(keyText, nil)
		w.wantRefused(onceward.ErrUnknown, a)
		if c := onceward.CodeOf(a.err); c != onceward.CodeOutcomeUnknown || c.Retry() != onceward.RetrySameKey || a.info.Kind != onceward.KindUnknown {
			w.Errorf("%s: %v", keyText, a)
		}
	}
	w.wantRuns(keyText, 0)
}
