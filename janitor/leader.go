package janitor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/onceward/onceward/driver"
)

// ownOperation is that of the record whose lease makes one janitor of several the leader. It is a record as any other.
const ownOperation = "onceward.janitor"

// leader claims the janitors' record and holds it.
type leader struct {
	store   Store
	claim   driver.Claim
	fence   int64 // zero: it does not lead
	renewed time.Time
}

func newLeader(s Store, o *Options) *leader {
	l := &leader{store: s, claim: driver.Claim{
		Scope: driver.Scope{Namespace: "onceward"}, Operation: ownOperation, Key: "leader",
		Lease: max(time.Second, 3*o.Every), Timeout: 24 * time.Hour, Retention: 24 * time.Hour, OnLapse: driver.LapseRepeat,
	}}
	_, _ = rand.Read(l.claim.Owner[:]) // never fails, by its contract
	l.claim.ID = driver.Identify(l.claim.Scope, l.claim.Operation, l.claim.Key)
	return l
}

// lead reports whether this one leads, by a lease that it holds or gets now.
func (l *leader) lead(ctx context.Context) (bool, error) {
	if l.fence != 0 {
		err := l.hold(ctx)
		if !errors.Is(err, driver.ErrLeaseLost) {
			return err == nil, err
		}
		l.fence = 0
		_, _ = rand.Read(l.claim.Owner[:]) // never fails, by its contract
	}
	began := time.Now()
	got, err := l.store.Claim(ctx, l.claim)
	if err != nil {
		return false, fmt.Errorf("janitor: claim of the lead: %w", err)
	}
	if got.Verdict != driver.GotClaim {
		return false, nil
	}
	l.fence, l.renewed = got.Record.Fence, began
	return true, nil
}

// hold renews the lease when a third of it is over.
func (l *leader) hold(ctx context.Context) error {
	began := time.Now()
	if began.Sub(l.renewed) < l.claim.Lease/3 {
		return nil
	}
	err := l.store.Renew(ctx, driver.Renewal{ID: l.claim.ID, Owner: l.claim.Owner, Fence: l.fence, Lease: l.claim.Lease})
	if err != nil {
		return fmt.Errorf("janitor: the lead: %w", err)
	}
	l.renewed = began
	return nil
}

// resign lets another one lead at once. When it fails the lease does so by itself.
func (l *leader) resign(ctx context.Context) {
	if l.fence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, _ = l.store.Finish(ctx, driver.Finish{Claim: l.claim, Fence: l.fence, Outcome: driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "it ended"}})
}
