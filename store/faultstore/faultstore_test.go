package faultstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

// TestConformance: without a fault it is the store inside.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		Open: func(storetest.T) driver.Store { return faultstore.New(memstore.New(nil)) },
		Edit: func(t storetest.T, s driver.Store, id driver.ID, change func(*driver.Record)) {
			snap, err := s.Get(t.Context(), id)
			if err != nil {
				t.Fatalf("edit: %v", err)
			}
			change(&snap.Record)
			s.(*faultstore.Store).Store.(*memstore.Store).Put(snap.Record)
		},
	})
}

func claimOf(text string) driver.Claim {
	sum, _ := fingerprint.Of(nil)
	c := driver.Claim{Operation: "pay", Key: text, Fingerprint: sum, Owner: driver.Owner{1}, Lease: time.Minute, Timeout: time.Minute, Retention: time.Hour, MaxAttempts: 1}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	return c
}

// stage is a store that holds an attempt, an unknown outcome, and nothing yet under the key "new"; and each call with
// a look at the store inside that tells whether it took effect.
type stage struct {
	*faultstore.Store
	inside *memstore.Store
}

func set(t *testing.T) *stage {
	t.Helper()
	inside := memstore.New(nil)
	for _, key := range []string{"runs", "unclear"} {
		got, err := inside.Claim(t.Context(), claimOf(key))
		if err != nil {
			t.Fatal(err)
		}
		if key == "runs" {
			continue
		}
		if _, err := inside.Finish(t.Context(), endOf(key, got.Record.Fence, driver.Outcome{Status: driver.Fail, Failure: driver.Unknown})); err != nil {
			t.Fatal(err)
		}
	}
	return &stage{faultstore.New(inside), inside}
}

func endOf(key string, fence int64, o driver.Outcome) driver.Finish {
	return driver.Finish{Claim: claimOf(key), Fence: fence, Attempt: 1, Outcome: o}
}

func (s *stage) record(t *testing.T, key string) driver.Record {
	t.Helper()
	snap, err := s.inside.Get(t.Context(), claimOf(key).ID)
	if err != nil && !errors.Is(err, driver.ErrNotFound) {
		t.Fatal(err)
	}
	return snap.Record
}

// call makes a call of a kind, and returns its error.
func (s *stage) call(ctx context.Context, t *testing.T, c faultstore.Call) (err error) {
	t.Helper()
	switch c {
	case faultstore.Claim:
		_, err = s.Claim(ctx, claimOf("new"))
	case faultstore.Renew:
		err = s.Renew(ctx, driver.Renewal{ID: claimOf("runs").ID, Owner: driver.Owner{1}, Fence: s.record(t, "runs").Fence, Lease: 2 * time.Minute})
	case faultstore.Progress:
		err = s.Progress(ctx, driver.Progress{ID: claimOf("runs").ID, Owner: driver.Owner{1}, Fence: s.record(t, "runs").Fence,
			Steps: []driver.Step{{Name: "bank", State: driver.StepBegun}}})
	case faultstore.Finish:
		_, err = s.Finish(ctx, endOf("runs", s.record(t, "runs").Fence, driver.Outcome{Status: driver.Success}))
	case faultstore.Settle:
		_, err = s.Settle(ctx, driver.Settlement{ID: claimOf("unclear").ID, Fence: s.record(t, "unclear").Fence, Owner: driver.Owner{2}, Outcome: driver.Outcome{Status: driver.Success}})
	case faultstore.Get:
		_, err = s.Get(ctx, claimOf("runs").ID)
	case faultstore.Scan:
		_, err = s.Scan(ctx, driver.Scan{Limit: 1})
	}
	return err
}

// effect reports whether a call of a kind changed the store inside; those that only read never do.
func (s *stage) effect(t *testing.T, c faultstore.Call) bool {
	t.Helper()
	switch c {
	case faultstore.Claim:
		return s.record(t, "new").Status == driver.Processing
	case faultstore.Renew:
		r := s.record(t, "runs")
		return r.LeaseUntil.Sub(r.CreatedAt) >= 2*time.Minute
	case faultstore.Progress:
		return s.record(t, "runs").Steps != nil
	case faultstore.Finish:
		return s.record(t, "runs").Status == driver.Success
	case faultstore.Settle:
		return s.record(t, "unclear").Status == driver.Success
	}
	return false
}

var writes = []faultstore.Call{faultstore.Claim, faultstore.Renew, faultstore.Progress, faultstore.Finish, faultstore.Settle}

var calls = append([]faultstore.Call{faultstore.Get, faultstore.Scan}, writes...)

// TestRefused: a refused call has no effect, and the one after it is the store's own.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range calls {
		s := set(t)
		s.Refuse(c, 2)
		for range 2 {
			if err := s.call(t.Context(), t, c); !errors.Is(err, faultstore.Err) || s.effect(t, c) {
				t.Errorf("%s: %v, effect %v", c, err, s.effect(t, c))
			}
		}
		if err := s.call(t.Context(), t, c); err != nil || s.Count(c) != 3 {
			t.Errorf("%s: %v, %d calls", c, err, s.Count(c))
		}
		for _, other := range calls {
			if n := s.Count(other); other != c && n != 0 {
				t.Errorf("%s was counted %d times as %s", c, n, other)
			}
		}
	}
}

// TestLost: a call whose reply is lost has its effect, and fails.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, c := range calls {
		s := set(t)
		s.Lose(c, 1)
		if err := s.call(t.Context(), t, c); !errors.Is(err, faultstore.Err) {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, c := range writes {
		s := set(t)
		s.Lose(c, 1)
		_ = s.call(t.Context(), t, c)
		if !s.effect(t, c) {
			t.Errorf("%s had no effect", c)
		}
		if err := s.call(t.Context(), t, c); err != nil {
			t.Errorf("%s, made again: %v", c, err)
		}
	}
}

// TestAll: a negative number is all of them, until it is taken back.
func TestAll(t *testing.T) {
	t.Parallel()
	s := set(t)
	for _, fault := range []func(faultstore.Call, int){s.Refuse, s.Lose} {
		fault(faultstore.Get, -1)
		for range 50 {
			if err := s.call(t.Context(), t, faultstore.Get); !errors.Is(err, faultstore.Err) {
				t.Fatal(err)
			}
		}
		fault(faultstore.Get, 0)
		if err := s.call(t.Context(), t, faultstore.Get); err != nil {
			t.Error(err)
		}
	}
}

// TestPlan: each call meets its own fault, chosen by its number; then the plan is over.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.Plan(faultstore.Claim, faultstore.Fault{}, faultstore.Fault{Err: driver.ErrStoreFull}, faultstore.Fault{Lost: true})
	for i, want := range []error{nil, driver.ErrStoreFull, faultstore.Err, nil} {
		key := string(rune('a' + i))
		if _, err := s.Claim(t.Context(), claimOf(key)); !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
		if took := s.record(t, key).Status == driver.Processing; took != (want != driver.ErrStoreFull) {
			t.Errorf("call %d took effect: %v", i, took)
		}
	}
}

// TestHeld: a held call hangs, has its effect after the release and not before, and ends with its context.
func TestHeld(t *testing.T) {
	t.Parallel()
	for _, c := range calls {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := set(t)
				first := s.Hold(c)
				ended := make(chan error, 1)
				go func() { ended <- s.call(t.Context(), t, c) }()
				synctest.Wait()
				second := s.Hold(c) // must not lock the first one in
				gone, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := s.call(gone, t, c); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("with a context that ends: %v", err)
				}
				if s.effect(t, c) || len(ended) != 0 {
					t.Error("a held call went through")
				}
				first()
				first()
				if c == faultstore.Renew { // its lease ended while it hung
					if err := <-ended; !errors.Is(err, driver.ErrLeaseLost) {
						t.Error(err)
					}
				} else if err := <-ended; err != nil || slices.Contains(writes, c) && !s.effect(t, c) {
					t.Errorf("after its release: %v, effect %v", err, s.effect(t, c))
				}
				second()
				if err := s.call(t.Context(), t, c); c != faultstore.Renew && err != nil || s.Count(c) != 3 {
					t.Errorf("%v, %d calls", err, s.Count(c))
				}
			})
		})
	}
}

// TestNoSweeper: a power that the store inside lacks is refused by name.
func TestNoSweeper(t *testing.T) {
	t.Parallel()
	s := faultstore.New(struct{ driver.Store }{memstore.New(nil)})
	if _, err := s.Scan(t.Context(), driver.Scan{Limit: 1}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
