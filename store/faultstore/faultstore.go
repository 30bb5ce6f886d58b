// Package faultstore puts faults around a real store: errors before a call, replies lost after it, and calls that hang
// until they are released.
package faultstore

import (
	"context"
	"errors"
	"sync"

	"github.com/onceward/onceward/driver"
)

// Call names a call of a store.
type Call string

// The calls.
const (
	Claim  Call = "claim"
	Renew  Call = "renew"
	Finish Call = "finish"
	Settle Call = "settle"
	Get    Call = "get"
)

// Err is what a faulty call returns.
var Err = errors.New("faultstore: the store is away")

// Store is a driver.Store with faults. Safe for concurrent use.
type Store struct {
	driver.Store
	mu     sync.Mutex
	counts map[Call]int
	refuse map[Call]int           // how many calls fail before they take effect; negative: all
	lose   map[Call]int           // how many take effect and lose their reply; negative: all
	hold   map[Call]chan struct{} // calls wait here, or for their context
}

// New puts faults, none at first, around inner.
func New(inner driver.Store) *Store {
	return &Store{Store: inner, counts: map[Call]int{}, refuse: map[Call]int{}, lose: map[Call]int{}, hold: map[Call]chan struct{}{}}
}

// Refuse lets the next n calls fail without effect; negative: all until Refuse(c, 0).
func (s *Store) Refuse(c Call, n int) { s.set(s.refuse, c, n) }

// Lose lets the next n calls take effect and lose their reply; negative: all until Lose(c, 0).
func (s *Store) Lose(c Call, n int) { s.set(s.lose, c, n) }

func (s *Store) set(m map[Call]int, c Call, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m[c] = n
}

// Hold lets calls hang until release is called. A held call also ends, without effect, with its context.
func (s *Store) Hold(c Call) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.hold[c] = gate
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.hold[c] == gate {
			delete(s.hold, c)
			close(gate)
		}
	}
}

// Count returns how many calls came, faulty ones included.
func (s *Store) Count(c Call) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[c]
}

// enter counts a call and says what is wrong with it.
func (s *Store) enter(ctx context.Context, c Call) (lost bool, err error) {
	s.mu.Lock()
	s.counts[c]++
	gate := s.hold[c]
	refused := take(s.refuse, c)
	lost = !refused && take(s.lose, c)
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	if refused {
		return false, Err
	}
	return lost, nil
}

func take(m map[Call]int, c Call) bool {
	if m[c] == 0 {
		return false
	}
	if m[c] > 0 {
		m[c]--
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
