// Package faultstore puts faults around a real store: errors before a call, replies lost after it, and calls that hang
// until they are released.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/onceward/onceward/driver"
)

// Call names a call of a store.
type Call string

// The calls.
const (
	Claim    Call = "claim"
	Renew    Call = "renew"
	Progress Call = "progress"
	Finish   Call = "finish"
	Settle   Call = "settle"
	Get      Call = "get"
	Scan     Call = "scan"
	Purge    Call = "purge"
)

// Err is what a faulty call returns, unless its Fault says otherwise.
var Err = errors.New("faultstore: the store is away")

// Fault is what becomes of one call. The zero value is no fault.
type Fault struct {
	Err  error // the call fails with it and has no effect
	Lost bool  // the call takes effect and its reply is lost: it fails with Err of this package
}

// Store is a driver.Store with faults, and has the powers to sweep, purge and keep steps where the store inside has them. Safe for concurrent use.
//
// What is to happen to a call is decided when it comes, before it is held: first by the plan, then by Refuse and Lose.
type Store struct {
	driver.Store
	mu    sync.Mutex
	calls map[Call]*faults
}

// faults are those of one kind of call.
type faults struct {
	count  int
	plan   []Fault
	refuse int           // how many calls fail before they take effect; negative: all
	lose   int           // how many take effect and lose their reply; negative: all
	hold   chan struct{} // calls wait here, or for their context
}

// New puts faults, none at first, around inner.
func New(inner driver.Store) *Store {
	return &Store{Store: inner, calls: map[Call]*faults{}}
}

// Plan says what becomes of the next calls, one fault for each, in their order; a zero Fault lets its call pass. It
// takes the place of an earlier plan.
func (s *Store) Plan(c Call, plan ...Fault) {
	s.on(c, func(f *faults) { f.plan = append([]Fault(nil), plan...) })
}

// Refuse lets the next n calls fail without effect; negative: all until Refuse(c, 0).
func (s *Store) Refuse(c Call, n int) { s.on(c, func(f *faults) { f.refuse = n }) }

// Lose lets the next n calls take effect and lose their reply; negative: all until Lose(c, 0).
func (s *Store) Lose(c Call, n int) { s.on(c, func(f *faults) { f.lose = n }) }

// Hold lets calls hang until release is called, which may be done more than once. A held call also ends, without
// effect, with its context.
func (s *Store) Hold(c Call) (release func()) {
	gate := make(chan struct{})
	s.on(c, func(f *faults) { f.hold = gate })
	return sync.OnceFunc(func() {
		s.on(c, func(f *faults) {
			if f.hold == gate { // not a later Hold's
				f.hold = nil
			}
		})
		close(gate)
	})
}

// Count returns how many calls came, faulty ones included.
func (s *Store) Count(c Call) (n int) {
	s.on(c, func(f *faults) { n = f.count })
	return n
}

func (s *Store) on(c Call, do func(f *faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.calls[c]
	if f == nil {
		f = &faults{}
		s.calls[c] = f
	}
	do(f)
}

// enter counts a call, lets it hang, and says what is wrong with it.
func (s *Store) enter(ctx context.Context, c Call) (lost bool, err error) {
	var fault Fault
	var gate chan struct{}
	s.on(c, func(f *faults) {
		f.count++
		gate, fault = f.hold, f.next()
	})
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return fault.Lost, fault.Err
}

func (f *faults) next() (fault Fault) {
	switch {
	case len(f.plan) > 0:
		fault, f.plan = f.plan[0], f.plan[1:]
	case take(&f.refuse):
		fault.Err = Err
	case take(&f.lose):
		fault.Lost = true
	}
	return fault
}

func take(n *int) bool {
	if *n == 0 {
		return false
	}
	if *n > 0 {
		*n--
	}
	return true
}

// through makes a call with its faults.
func through[R any](ctx context.Context, s *Store, c Call, call func() (R, error)) (R, error) {
	var zero R
	lost, err := s.enter(ctx, c)
	if err != nil {
		return zero, err
	}
	reply, err := call()
	if lost {
		return zero, Err
	}
	return reply, err
}

// Claim implements driver.Store.
func (s *Store) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	return through(ctx, s, Claim, func() (driver.Claimed, error) { return s.Store.Claim(ctx, c) })
}

// Renew implements driver.Store.
func (s *Store) Renew(ctx context.Context, r driver.Renewal) error {
	_, err := through(ctx, s, Renew, func() (struct{}, error) { return struct{}{}, s.Store.Renew(ctx, r) })
	return err
}

// Progress implements driver.StepStore. On a store without this power it fails with an error that is errors.ErrUnsupported.
func (s *Store) Progress(ctx context.Context, p driver.Progress) error {
	steps, ok := s.Store.(driver.StepStore)
	if !ok {
		return fmt.Errorf("faultstore: %T is no driver.StepStore: %w", s.Store, errors.ErrUnsupported)
	}
	_, err := through(ctx, s, Progress, func() (struct{}, error) { return struct{}{}, steps.Progress(ctx, p) })
	return err
}

// Finish implements driver.Store.
func (s *Store) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	return through(ctx, s, Finish, func() (driver.Finished, error) { return s.Store.Finish(ctx, f) })
}

// Settle implements driver.Store.
func (s *Store) Settle(ctx context.Context, st driver.Settlement) (driver.Settled, error) {
	return through(ctx, s, Settle, func() (driver.Settled, error) { return s.Store.Settle(ctx, st) })
}

// Get implements driver.Store.
func (s *Store) Get(ctx context.Context, id driver.ID) (driver.Snapshot, error) {
	return through(ctx, s, Get, func() (driver.Snapshot, error) { return s.Store.Get(ctx, id) })
}

// Scan implements driver.Sweeper. On a store without this power it fails with an error that is errors.ErrUnsupported.
func (s *Store) Scan(ctx context.Context, q driver.Scan) (driver.Page, error) {
	sweeper, ok := s.Store.(driver.Sweeper)
	if !ok {
		return driver.Page{}, fmt.Errorf("faultstore: %T is no driver.Sweeper: %w", s.Store, errors.ErrUnsupported)
	}
	return through(ctx, s, Scan, func() (driver.Page, error) { return sweeper.Scan(ctx, q) })
}

// Purge implements driver.Purger. On a store without this power it fails with an error that is errors.ErrUnsupported.
func (s *Store) Purge(ctx context.Context, p driver.Purge) (int, error) {
	purger, ok := s.Store.(driver.Purger)
	if !ok {
		return 0, fmt.Errorf("faultstore: %T is no driver.Purger: %w", s.Store, errors.ErrUnsupported)
	}
	return through(ctx, s, Purge, func() (int, error) { return purger.Purge(ctx, p) })
}
