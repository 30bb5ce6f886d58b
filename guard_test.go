package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
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

func paid(context.Context) (string, error) { return "paid", nil }

func TestStormCostsTwoStoreCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)})
		errs := oncetest.Storm(t, func(int) error {
			v, _, err := d.pay(t.Context(), "K", func(context.Context) (string, error) {
				time.Sleep(time.Second) // in the bubble's time
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
			time.Sleep(5 * time.Second)
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
			_, _, _ = d.pay(t.Context(), "K", func(context.Context) (string, error) { time.Sleep(10 * time.Second); return "paid", nil })
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
				time.Sleep(time.Second)
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
			_, _, _ = a.pay(t.Context(), "K", func(context.Context) (string, error) { time.Sleep(10 * time.Second); return "paid", nil })
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
			_, _, _ = a.pay(t.Context(), "K", func(context.Context) (string, error) { time.Sleep(10 * time.Second); return "paid", nil })
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
				time.Sleep(5 * time.Second)
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
			time.Sleep(time.Minute)
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
		time.Sleep(5 * time.Minute)
		for _, desk := range []*desk{d, other} {
			if _, _, err := desk.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrInFlight) {
				t.Errorf("meanwhile: %v", err)
			}
		}
		d.store.Refuse(faultstore.Finish, 0)
		time.Sleep(2 * time.Second)
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
			if _, info, err := d.pay(t.Context(), "K", func(context.Context) (string, error) { time.Sleep(time.Minute); return "paid", nil }); err != nil || !info.Recorded {
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
		time.Sleep(5 * time.Second)
		if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Attempt != 2 {
			t.Errorf("afterwards: %q %+v %v", v, info, err)
		}
		d.ledger.WantOnce(t, "K")
		_, _ = d.Close(t.Context())
	})
}

// TestLateClaimIsNotRunUnder: an answer that took the lease's time is no claim to run under.
func TestLateClaimIsNotRunUnder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Lease: 3 * time.Second})
		release := d.store.Hold(faultstore.Claim)
		go func() { time.Sleep(2900 * time.Millisecond); release() }()
		if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrStoreUnavailable) || d.ledger.Count("K") != 0 {
			t.Errorf("%v", err)
		}
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

// TestWhatAnErrorMeans: every class of error under every policy.
func TestWhatAnErrorMeans(t *testing.T) {
	t.Parallel()
	plain := errors.New("no such product")
	for _, c := range []struct {
		name                                 string
		err                                  error
		infer, keep, strict, repeatableInfer driver.Failure
	}{
		{"plain", plain, driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"wrapped plain", fmt.Errorf("x: %w", plain), driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"Retryable", onceward.Retryable(plain), driver.Retryable, driver.Retryable, driver.Retryable, driver.Retryable},
		{"Final", onceward.Final(plain), driver.Final, driver.Final, driver.Final, driver.Final},
		{"Unknown", onceward.Unknown(plain), driver.Unknown, driver.Unknown, driver.Unknown, driver.Unknown},
		{"wrapped Final", fmt.Errorf("x: %w", onceward.Final(plain)), driver.Final, driver.Final, driver.Final, driver.Final},
		{"deadline", context.DeadlineExceeded, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"cancelled", fmt.Errorf("bank: %w", context.Canceled), driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"timeout", &net.DNSError{IsTimeout: true}, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"os deadline", os.ErrDeadlineExceeded, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"reset", &net.OpError{Err: os.NewSyscallError("read", syscall.ECONNRESET)}, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"unexpected EOF", io.ErrUnexpectedEOF, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"refused", &net.OpError{Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
	} {
		for policy, want := range map[string]driver.Failure{"infer": c.infer, "keep": c.keep, "strict": c.strict, "repeatable": c.repeatableInfer} {
			o := onceward.Operation{}
			switch policy {
			case "keep":
				o.OnError = onceward.KeepFailure
			case "strict":
				o.OnError = onceward.Strict
			case "repeatable":
				o.Repeatable = true
			}
			d := newDesk(t, o)
			_, _, err := d.pay(t.Context(), "K", func(context.Context) (string, error) { return "", c.err })
			if !errors.Is(err, c.err) {
				t.Errorf("%s, %s: the first caller lost the error: %v", c.name, policy, err)
			}
			v, _, again := d.pay(t.Context(), "K", paid)
			var final *onceward.FinalError
			switch want {
			case driver.Retryable:
				if v != "paid" || again != nil {
					t.Errorf("%s, %s: %q %v, want another run", c.name, policy, v, again)
				}
			case driver.Final:
				if !errors.As(again, &final) || final.Text != c.err.Error() {
					t.Errorf("%s, %s: %v, want the first failure", c.name, policy, again)
				}
			case driver.Unknown:
				if !errors.Is(again, onceward.ErrUnknown) {
					t.Errorf("%s, %s: %v, want unknown", c.name, policy, again)
				}
			}
		}
	}
}

func TestPanicAndGoexit(t *testing.T) {
	t.Parallel()
	for _, repeatable := range []bool{false, true} {
		d := newDesk(t, onceward.Operation{Repeatable: repeatable})
		func() {
			defer func() {
				if p := recover(); p != "broken" {
					t.Errorf("the panic became %v", p)
				}
			}()
			_, _, _ = d.pay(t.Context(), "K", func(context.Context) (string, error) { panic("broken") })
		}()
		v, _, err := d.pay(t.Context(), "K", paid)
		if repeatable && (v != "paid" || err != nil) || !repeatable && !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("repeatable %v: %q %v", repeatable, v, err)
		}
	}
}

func TestCaseB008RecoveryIsThePolicysChoice(t *testing.T) {
	t.Parallel()
	for _, repeatable := range []bool{false, true} {
		mem := memstore.New(nil)
		d := newDeskOn(t, mem, onceward.Operation{Repeatable: repeatable})
		g, _ := onceward.New(mem, &onceward.Options{SingleTenant: true})
		op, _ := g.Define(onceward.Operation{Name: "pay", Repeatable: repeatable})
		dead, err := g.Begin(t.Context(), op, onceward.Call{Key: k("K"), Request: 7}) // and dies here
		if err != nil {
			t.Fatal(err)
		}
		mem.Shift(driver.Identify(driver.Scope{}, "pay", "K"), time.Minute)
		v, info, err := d.pay(t.Context(), "K", paid)
		if repeatable && (v != "paid" || !info.Takeover) || !repeatable && !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("repeatable %v: %q %+v %v", repeatable, v, info, err)
		}
		if n := d.ledger.Count("K"); repeatable && n != 1 || !repeatable && n != 0 {
			t.Errorf("repeatable %v: ran %d times", repeatable, n)
		}
		_, _ = dead.Attempt.Fail(t.Context(), driver.Retryable, nil, onceward.Result{})
	}
}

func TestRejectAndRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{OnDuplicate: onceward.Reject})
	_, _, _ = d.pay(t.Context(), "K", paid)
	if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrDuplicate) {
		t.Errorf("%v", err)
	}
	if _, err := onceward.Do(t.Context(), d.op, onceward.Call{}, paid); !errors.Is(err, onceward.ErrKeyMissing) {
		t.Errorf("%v", err)
	}
	g, _ := onceward.New(memstore.New(nil), nil)
	op, _ := g.Define(onceward.Operation{Name: "pay"})
	if _, err := onceward.Do(t.Context(), op, onceward.Call{Key: k("secret-key")}, paid); !errors.Is(err, onceward.ErrScopeMissing) || strings.Contains(err.Error(), "secret-key") {
		t.Errorf("%v", err)
	}
	if _, err := onceward.Do(t.Context(), nil, onceward.Call{Key: k("K")}, paid); err == nil {
		t.Error("no operation was taken")
	}
}

// TestCaseB067NothingPanicsAtConstruction.
func TestCaseB067ZeroValues(t *testing.T) {
	t.Parallel()
	if _, err := onceward.New(nil, nil); err == nil {
		t.Error("no store was taken")
	}
	if _, err := onceward.New(memstore.New(nil), &onceward.Options{StoreTimeout: -1}); err == nil {
		t.Error("a negative timeout was taken")
	}
	g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []onceward.Operation{
		{}, {Name: "a b"}, {Name: strings.Repeat("x", 65)}, {Name: "x", Lease: time.Millisecond}, {Name: "x", Retention: -1},
		{Name: "x", Timeout: -1}, {Name: "x", MaxAttempts: -1}, {Name: "x", OnInFlight: onceward.Wait(-1)}, {Name: "x", OnError: 9},
	} {
		if _, err := g.Define(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if _, err := g.Define(onceward.Operation{Name: "x"}); err != nil {
		t.Error(err)
	}
	if _, err := g.Define(onceward.Operation{Name: "x"}); err == nil {
		t.Error("a name was taken twice")
	}
}

// TestCodes: the table of the answers, exhaustive.
func TestCodes(t *testing.T) {
	t.Parallel()
	want := map[onceward.Code]struct {
		retry onceward.Retry
		exit  int
	}{
		"key_missing": {"stop", 2}, "key_invalid": {"stop", 2}, "scope_missing": {"stop", 2}, "in_flight": {"same_key", 4},
		"superseded": {"same_key", 4}, "outcome_unknown": {"same_key", 9}, "duplicate": {"stop", 4}, "key_expired": {"stop", 5},
		"body_too_large": {"stop", 2}, "mismatch": {"new_key", 5}, "too_many": {"same_key", 4}, "store_unavailable": {"same_key", 6},
		"store_full": {"same_key", 6}, "upstream_unreachable": {"same_key", 6}, "corrupt_record": {"stop", 1}, "result_not_kept": {"stop", 0},
	}
	for _, c := range onceward.Codes() {
		w, ok := want[c]
		if !ok || c.Retry() != w.retry || c.Exit() != w.exit || c.Text() == "" || c.Text() == string(c) {
			t.Errorf("%s: %s, exit %d, %q", c, c.Retry(), c.Exit(), c.Text())
		}
		delete(want, c)
	}
	if len(want) > 0 {
		t.Errorf("no code: %v", want)
	}
}
