package onceward_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/oncetest"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

// TestLostLeaseIsHeardAtTheNextHeartbeat: when the store says that the lease is gone, the work is told then.
func TestLostLeaseIsHeardAtTheNextHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		d := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		other := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		v, info, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			start := time.Now()
			mem.Shift(idOf("K"), time.Minute)
			if v, info, err := other.pay(t.Context(), "K", func(context.Context) (string, error) { return "winner", nil }); v != "winner" || !info.Takeover {
				t.Errorf("the takeover: %q %+v %v", v, info, err)
			}
			<-ctx.Done()
			if at := time.Since(start); at != onceward.DefaultLease/3 || !errors.Is(context.Cause(ctx), onceward.ErrLeaseLost) {
				t.Errorf("told after %v by %v", at, context.Cause(ctx))
			}
			return "late", nil
		})
		if v != "winner" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("%q %+v %v", v, info, err)
		}
		if n := d.store.Count(faultstore.Renew); n != 1 {
			t.Errorf("%d heartbeats", n)
		}
	})
}

// TestHeartbeatTriesAgain: a store that stumbles, before or after it renewed, costs nobody the lease.
func TestHeartbeatTriesAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*faultstore.Store){
		"refused": func(s *faultstore.Store) { s.Refuse(faultstore.Renew, 3) },
		"lost":    func(s *faultstore.Store) { s.Lose(faultstore.Renew, 3) },
		"slow": func(s *faultstore.Store) {
			release := s.Hold(faultstore.Renew)
			time.AfterFunc(onceward.DefaultLease*2/3, release)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(nil)
				d, other := newDeskOn(t, mem, onceward.Operation{Repeatable: true}), newDeskOn(t, mem, onceward.Operation{Repeatable: true})
				fault(d.store)
				v, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
					pass(2 * time.Minute)
					_, _, err := other.pay(t.Context(), "K", paid)
					if !errors.Is(err, onceward.ErrInFlight) {
						t.Errorf("another process: %v", err)
					}
					return "paid", ctx.Err()
				})
				if v != "paid" || err != nil || d.count(onceward.EventLeaseLost) != 0 {
					t.Errorf("%q %v", v, err)
				}
			})
		})
	}
}

// TestSlowHeartbeatCountsFromItsSending: the store may have renewed as early as that.
func TestSlowHeartbeatCountsFromItsSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		release := d.store.Hold(faultstore.Renew)
		start := time.Now()
		_, _, _ = d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			pass(20 * time.Second)               // the heartbeat was sent after 10
			d.store.Refuse(faultstore.Renew, -1) // those after it
			release()
			<-ctx.Done()
			if at := time.Since(start); at != 35*time.Second {
				t.Errorf("cancelled after %v", at)
			}
			return "paid", nil
		})
	})
}

// TestHeartbeatOnItsWayAtTheTimeout is the last one.
func TestHeartbeatOnItsWayAtTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Timeout: 12 * time.Second})
		release := d.store.Hold(faultstore.Renew)
		_, _, _ = d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			pass(3 * time.Second)
			release()
			pass(5 * time.Minute)
			return "paid", nil
		})
		if n, told := d.store.Count(faultstore.Renew), d.count(onceward.EventTimeout); n != 1 || told != 1 {
			t.Errorf("%d heartbeats, told %d times", n, told)
		}
	})
}

type valueKey struct{}

// TestTheWorksContext keeps the caller's values, is no child of its cancellation, and tells its children why it ended.
func TestTheWorksContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		d.store.Refuse(faultstore.Renew, -1)
		caller, hangUp := context.WithTimeout(context.WithValue(t.Context(), valueKey{}, "trace"), time.Second)
		defer hangUp()
		_, _, err := d.pay(caller, "K", func(ctx context.Context) (string, error) {
			if ctx.Value(valueKey{}) != "trace" {
				t.Error("the caller's values are lost")
			}
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != onceward.DefaultTimeout {
				t.Errorf("deadline in %v", time.Until(at))
			}
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-onceward.CallerGone(child)
			if ctx.Err() != nil || child.Err() != nil || context.Cause(ctx) != nil {
				t.Errorf("the caller took the work with it: %v, %v", ctx.Err(), child.Err())
			}
			<-child.Done()
			if !errors.Is(context.Cause(child), onceward.ErrLeaseLost) || !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("%v, %v", context.Cause(child), ctx.Err())
			}
			return "paid", nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestClaimInFlightIsShared: while a claim is on its way, everybody in the process waits for its one answer.
func TestClaimInFlightIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		release := d.store.Hold(faultstore.Claim)
		finish := make(chan struct{})
		type answer struct {
			name string
			v    string
			err  error
		}
		answers := make(chan answer, 4)
		call := func(ctx context.Context, name string, request any) {
			go func() {
				v, err := onceward.Do(ctx, d.op, onceward.Call{Key: k("K"), Request: request}, func(context.Context) (string, error) {
					d.ledger.Add("K")
					<-finish
					return "paid", nil
				})
				answers <- answer{name, v, err}
			}()
			synctest.Wait()
		}
		expect := func(name, v string, want error) {
			t.Helper()
			if got := <-answers; got.name != name || got.v != v || !errors.Is(got.err, want) {
				t.Errorf("%+v, want %s, %q, %v", got, name, v, want)
			}
		}
		leaver, leave := context.WithCancel(t.Context())
		impatient, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		call(leaver, "leader", 7)
		leave() // a claim under way is not torn by a caller who hangs up
		call(impatient, "impatient", 7)
		giveUp()
		expect("impatient", "", context.Canceled)
		call(t.Context(), "other request", 8)
		pass(time.Second)
		if n := d.store.Count(faultstore.Claim); n != 1 {
			t.Errorf("%d claims", n)
		}
		release()
		expect("other request", "", onceward.ErrMismatch)
		call(t.Context(), "duplicate", 7)
		expect("duplicate", "", onceward.ErrInFlight)
		close(finish)
		expect("leader", "paid", nil)
		if n := d.store.Count(faultstore.Claim); n != 1 {
			t.Errorf("%d claims", n)
		}
		d.ledger.WantOnce(t, "K")
	})
}

// TestClaimInFlightIsSharedByEqualsOnly: a replay is not for another request that came meanwhile.
func TestClaimInFlightIsSharedByEqualsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		_, _, _ = d.pay(t.Context(), "K", paid)
		release := d.store.Hold(faultstore.Claim)
		time.AfterFunc(time.Second, release)
		errs := oncetest.Storm(t, func(i int) error {
			_, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K"), Request: 7 + i%2}, paid)
			return err
		}, 20)
		for i, err := range errs {
			if i%2 == 0 && err != nil || i%2 == 1 && !errors.Is(err, onceward.ErrMismatch) {
				t.Errorf("request %d: %v", 7+i%2, err)
			}
		}
		d.ledger.WantOnce(t, "K")
	})
}

// TestPatienceWithAStumblingStore: less and less often, until StoreTimeout or until the caller has gone.
func TestPatienceWithAStumblingStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		d.store.Refuse(faultstore.Claim, -1)
		start := time.Now()
		if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrStoreUnavailable) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if n := d.store.Count(faultstore.Claim); n < 8 || n > 16 { // pauses of 20 ms doubling to 1 s, or half of it
			t.Errorf("%d claims", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if _, _, err := d.pay(ctx, "K", paid); !errors.Is(err, onceward.ErrStoreUnavailable) || time.Since(start) > 2*time.Second {
			t.Errorf("a caller who left: %v after %v", err, time.Since(start))
		}
		_, _ = d.Close(t.Context())
	})
}

// TestStoreDownIsSharedToo: a crowd behind one key asks a dead store no more than one caller does.
func TestStoreDownIsSharedToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		release := d.store.Hold(faultstore.Claim)
		errs := make(chan error, 50)
		start := time.Now()
		for range cap(errs) {
			go func() { _, _, err := d.pay(t.Context(), "K", paid); errs <- err }()
		}
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, onceward.ErrStoreUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		if n := d.store.Count(faultstore.Claim); n != 1 || time.Since(start) != 5*time.Second || d.ledger.Count("K") != 0 {
			t.Errorf("%d claims, %v, ran %d times", n, time.Since(start), d.ledger.Count("K"))
		}
		release()
		_, _ = d.Close(t.Context())
	})
}

// TestGiveBackTouchesNobodyElse: when another process has claimed meanwhile, its claim stands.
func TestGiveBackTouchesNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		d, other := newDeskOn(t, mem, onceward.Operation{}), newDeskOn(t, mem, onceward.Operation{})
		d.store.Refuse(faultstore.Claim, -1)
		if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrStoreUnavailable) {
			t.Errorf("%v", err)
		}
		v, _, err := other.pay(t.Context(), "K", slow(time.Minute))
		if v != "paid" || err != nil {
			t.Errorf("%q %v", v, err)
		}
		if lost, err := d.Close(t.Context()); lost != 0 || err != nil {
			t.Errorf("%d %v", lost, err)
		}
		if n := d.store.Count(faultstore.Finish); n != 0 {
			t.Errorf("%d finishes", n)
		}
		if s, err := mem.Get(t.Context(), idOf("K")); err != nil || s.Record.Status != driver.Success {
			t.Errorf("%v %v", s.Record.Status, err)
		}
	})
}
