package onceward

import (
	"context"
	"errors"
	"time"

	"github.com/onceward/onceward/driver"
)

// validUntil returns until when the claim is good as far as this process knows.
func (a *Attempt) validUntil() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.valid
}

// next returns when tick has something to do. Callers hold a.mu.
func (a *Attempt) next() time.Time {
	at := a.valid.Add(-margin(a.op.policy.Lease))
	if !a.renewing && a.nextBeat.Before(at) {
		at = a.nextBeat
	}
	if !a.deadline.IsZero() && a.deadline.Before(at) {
		at = a.deadline
	}
	return at
}

// tick is the attempt's timer: it renews the lease every third of it, and cancels the work at its timeout, or a
// margin before a lease that was not renewed ends. While a heartbeat is on its way the timer goes on, so that a store
// that hangs can't keep a dead claim's work alive.
func (a *Attempt) tick() {
	a.mu.Lock()
	if a.stopped {
		a.mu.Unlock()
		return
	}
	now := time.Now()
	switch {
	case !a.deadline.IsZero() && !now.Before(a.deadline):
		a.mu.Unlock()
		a.guard.emit(Event{Kind: EventTimeout, Operation: a.op.policy.Name, Key: a.key, Attempt: a.number})
		a.lose(context.DeadlineExceeded)
		return
	case !now.Before(a.valid.Add(-margin(a.op.policy.Lease))):
		a.mu.Unlock()
		a.leaseLost()
		return
	case a.renewing || now.Before(a.nextBeat):
		a.timer.Reset(time.Until(a.next()))
		a.mu.Unlock()
		return
	}
	a.renewing = true
	patience := a.valid.Add(-margin(a.op.policy.Lease))
	a.timer.Reset(time.Until(a.next()))
	a.mu.Unlock()

	sent := time.Now() // the lease counts from no earlier than here
	err := a.renew(patience)

	a.mu.Lock()
	defer a.mu.Unlock()
	a.renewing = false
	switch {
	case a.stopped:
		return
	case errors.Is(err, driver.ErrLeaseLost):
		a.mu.Unlock()
		a.leaseLost()
		a.mu.Lock()
		return
	case err != nil:
		a.nextBeat = time.Now().Add(a.op.policy.Lease / 12)
	default:
		a.extend(sent)
	}
	a.timer.Reset(time.Until(a.next()))
}

// extend notes a lease that was renewed by a call sent then. Callers hold a.mu.
func (a *Attempt) extend(sent time.Time) {
	if until := sent.Add(a.op.policy.Lease); until.After(a.valid) {
		a.valid, a.nextBeat = until, sent.Add(a.op.policy.Lease/3)
	}
}

// renewed notes a renewal that a step's write has brought. The timer, which then comes early, looks again.
func (a *Attempt) renewed(sent time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.extend(sent)
	}
}

func (a *Attempt) renew(patience time.Time) error {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(a.ctx.values.caller), patience)
	defer cancel()
	_, err := timed(ctx, a.guard, "renew", a.op.policy.Name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, a.guard.store.Renew(ctx, driver.Renewal{
			ID: a.claim.ID, Owner: a.claim.Owner, Fence: a.fence, Lease: a.op.policy.Lease,
		})
	})
	return err
}

func (a *Attempt) leaseLost() {
	a.guard.emit(Event{Kind: EventLeaseLost, Operation: a.op.policy.Name, Key: a.key, Attempt: a.number, Err: ErrLeaseLost})
	a.lose(ErrLeaseLost)
}

// lose cancels the work's context and stops the heartbeat. The attempt can still end: its truth is taken as long as
// nobody claimed the key since. Duplicates in this process ask the store from here on.
func (a *Attempt) lose(cause error) {
	a.stopBeat()
	a.cancel(cause)
	a.guard.flights.land(a.flight, Decision{}, nil, false)
}

func (a *Attempt) stopBeat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	a.timer.Stop()
}
