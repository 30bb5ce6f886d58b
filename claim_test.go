package onceward_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

// TestLateClaimIsGivenBack: a claim that is answered when its lease or its timeout is over is given back, and the key is
// free for the next caller.
func TestLateClaimIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]onceward.Operation{
		"timeout is over": {Timeout: time.Second}, "lease is nearly over": {Lease: 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, o)
				release := d.store.Hold(faultstore.Claim)
				go func() { pass(1100 * time.Millisecond); release() }()
				if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrStoreUnavailable) {
					t.Errorf("%v", err)
				}
				pass(time.Second)
				if v, _, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil {
					t.Errorf("the next caller: %q %v", v, err)
				}
				d.ledger.WantOnce(t, "K")
			})
		})
	}
}

// TestOwnClaimThatLapsedIsGivenBack: the reply is lost, and the lease over when the claim is made again.
func TestOwnClaimThatLapsedIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := onceward.New(&lateReply{Store: memstore.New(nil), by: 2100 * time.Millisecond}, &onceward.Options{SingleTenant: true})
		if err != nil {
			t.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "pay", Lease: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		work := func(context.Context) (string, error) { runs++; return "paid", nil }
		if _, err := onceward.Do(t.Context(), op, onceward.Call{Key: k("K")}, work); !errors.Is(err, onceward.ErrStoreUnavailable) {
			t.Errorf("%v", err)
		}
		pass(time.Minute)
		if v, err := onceward.Do(t.Context(), op, onceward.Call{Key: k("K")}, work); v != "paid" || err != nil || runs != 1 {
			t.Errorf("%q %v, ran %d times", v, err, runs)
		}
		_, _ = g.Close(t.Context())
	})
}

// lateReply makes its first claim, answers late, and with an error.
type lateReply struct {
	*memstore.Store
	by   time.Duration
	late sync.Once
}

func (s *lateReply) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	reply, err := s.Store.Claim(ctx, c)
	s.late.Do(func() {
		pass(s.by)
		reply, err = driver.Claimed{}, errors.New("connection reset")
	})
	return reply, err
}

// TestLeaderWhoIsGoneFailsNobody: its claim ends with an error, and its followers claim for themselves.
func TestLeaderWhoIsGoneFailsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		release := d.store.Hold(faultstore.Claim)
		d.store.Plan(faultstore.Claim, faultstore.Fault{Err: errors.New("connection reset")})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = d.pay(ctx, "K", paid) })
		synctest.Wait()
		wg.Go(func() {
			if v, _, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil {
				t.Errorf("the follower: %q %v", v, err)
			}
		})
		synctest.Wait()
		cancel()
		release()
		wg.Wait()
		_, _ = d.Close(t.Context())
	})
}

// TestCallerWhoIsGoneDoesNotBypass: one lost reply is no store that is down.
func TestCallerWhoIsGoneDoesNotBypass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Repeatable: true, OnStoreDown: onceward.Open})
		release := d.store.Hold(faultstore.Claim)
		d.store.Plan(faultstore.Claim, faultstore.Fault{Lost: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, info, err := d.pay(ctx, "K", paid); err == nil || info.Bypassed {
				t.Errorf("%+v %v", info, err)
			}
		}()
		synctest.Wait()
		cancel()
		release()
		<-done
		pass(time.Minute)
		if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Bypassed {
			t.Errorf("%q %+v %v", v, info, err)
		}
		d.ledger.WantOnce(t, "K")
		_, _ = d.Close(t.Context())
	})
}

// TestTakeoverIsTold although the reply to its claim was lost.
func TestTakeoverIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		dead := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		dead.begin(t, "K")
		mem.Shift(idOf("K"), time.Minute)
		d := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		d.store.Lose(faultstore.Claim, 1)
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			if a, _ := onceward.FromContext(ctx); a.Number() != 2 || !a.Takeover() {
				t.Errorf("attempt %d, takeover %v", a.Number(), a.Takeover())
			}
			return "", nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestDamagedRowIsACorruptRecord, at once, and never a reason to run, on a store that can be damaged.
func TestDamagedRowIsACorruptRecord(t *testing.T) {
	t.Parallel()
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	g, err := onceward.New(f, &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []onceward.Operation{{Name: "closed"}, {Name: "open", Repeatable: true, OnStoreDown: onceward.Open}} {
		op, err := g.Define(o)
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		do := func() error {
			_, err := onceward.Do(t.Context(), op, onceward.Call{Key: k("K")}, func(context.Context) (string, error) { runs++; return "paid", nil })
			return err
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.DB.ExecContext(t.Context(), "UPDATE onceward_records SET fingerprint = x'00' WHERE operation = ?", o.Name); err != nil {
			t.Fatal(err)
		}
		if err := do(); !errors.Is(err, onceward.ErrCorruptRecord) || runs != 1 {
			t.Errorf("%s: %v, ran %d times", o.Name, err, runs)
		}
	}
	if _, err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
