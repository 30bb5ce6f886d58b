package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
)

// readiness asks the store whether it takes writes, by writing: a full disk and another's lock can be read through for
// ever. It asks one question at a time and remembers the answer for a moment, so that nobody can load the store by asking.
type readiness struct {
	store driver.Store

	mu     sync.Mutex
	asking chan struct{} // closed when the question under way is answered; nil: none is
	asked  time.Time
	answer error
	wg     sync.WaitGroup
}

const (
	remembered  = time.Second
	readyWithin = 2 * time.Second
)

var errSlowStore = errors.New("it does not answer in time")

// ask returns what is wrong with the store, nil for nothing.
func (r *readiness) ask(ctx context.Context) error {
	r.mu.Lock()
	if r.asking == nil && time.Since(r.asked) >= remembered {
		answered := make(chan struct{})
		r.asking = answered
		r.wg.Go(func() {
			err := write(context.WithoutCancel(ctx), r.store)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asking, r.asked, r.answer = nil, time.Now(), err
			close(answered)
		})
	}
	asking := r.asking
	r.mu.Unlock()
	if asking != nil { // a store that waits for another's lock may take longer than any prober waits
		late := time.NewTimer(readyWithin)
		defer late.Stop()
		select {
		case <-asking:
		case <-late.C:
			return errSlowStore
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer
}

// close waits for the question under way.
func (r *readiness) close() { r.wg.Wait() }

// readyOperation is the one whose record is written to see that the store can be written.
const readyOperation = "onceward.ready"

// write claims a record of ours and gives it back.
func write(ctx context.Context, s driver.Store) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	sum, err := fingerprint.Of(nil)
	if err != nil {
		return err
	}
	c := driver.Claim{
		Operation: readyOperation, Key: "ready", Fingerprint: sum, OnLapse: driver.LapseRepeat, MaxAttempts: math.MaxInt32,
		Lease: time.Second, Timeout: time.Second, Retention: time.Millisecond,
	}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	_, _ = rand.Read(c.Owner[:]) // never fails, by its contract
	got, err := s.Claim(ctx, c)
	if err != nil || got.Verdict != driver.GotClaim {
		return err // another process asks the same at this moment, or its attempt died just now: it has written
	}
	_, err = s.Finish(ctx, driver.Finish{
		Claim: c, Fence: got.Record.Fence, Attempt: got.Record.Attempt, Died: got.Record.Died,
		Outcome: driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "asked whether the store can be written"},
	})
	return err
}
