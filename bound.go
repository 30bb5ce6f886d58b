package onceward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onceward/onceward/driver"
)

// Bound says how a guard works inside transactions, see Guard.On.
type Bound struct {
	// Begin returns the store as it works in a transaction: a new one at each call, when Commits, after the one before has
	// been rolled back. ctx bounds the wait for a connection, not the transaction. Its errors are the store's.
	Begin func(ctx context.Context) (driver.Store, error)
	// Commits states that the store's Finish commits the transaction, or rolls it back for a retryable end, before it
	// returns. Then duplicates in this process are told as soon as it has. Without it the caller commits, nobody knows when,
	// and duplicates ask the database.
	Commits bool
}

// On returns a guard of the same operations, limits and observers, whose claims and ends run inside transactions. It takes
// the operations of the transaction kind, and only those. It is for packages that bring transactions, oncesql for one.
func (g *Guard) On(b Bound) *Guard { return &Guard{core: g.core, bound: &b} }

// TxStore returns the store's power to work inside a caller's transaction; false when it has none.
func (g *Guard) TxStore() (driver.TxStore, bool) {
	s, ok := g.store.(driver.TxStore)
	return s, ok
}

// Once runs check for key until it has gone well for it. It is for packages that bring transactions, to look at a database once.
func (g *Guard) Once(key any, check func() error) error {
	if _, ok := g.checked.Load(key); ok {
		return nil
	}
	err := check()
	if err == nil {
		g.checked.Store(key, struct{}{})
	}
	return err
}

// insideTx asks a context whose transaction it is inside of.
type insideTx struct{}

// checkKind refuses an operation that this guard can't run here.
func (g *Guard) checkKind(ctx context.Context, op *Op) error {
	switch inside, _ := ctx.Value(insideTx{}).(*core); {
	case g.bound == nil && op.policy.Tx:
		return fmt.Errorf("onceward: operation %q is of the transaction kind: run it by oncesql.Do or oncesql.Join", op.policy.Name)
	case g.bound != nil && !op.policy.Tx:
		return fmt.Errorf("onceward: operation %q is not of the transaction kind: set Operation.Tx", op.policy.Name)
	case inside == g.core && (g.bound == nil || g.bound.Commits):
		return ErrInsideTx
	}
	return nil
}

// board is flights.board, but for calls whose end nobody else in this process can know.
func (g *Guard) board(in *intent) (f *flight, leads bool) {
	if g.bound != nil && !g.bound.Commits {
		return &flight{id: in.id, sum: in.sum}, true
	}
	return g.flights.board(in.id, in.sum)
}

// maxTxTries bounds how often a claim is made anew, in a new transaction, before the work has begun.
const maxTxTries = 10

// claimBound claims inside a transaction. Whatever goes wrong, a rollback leaves nothing behind.
func (g *Guard) claimBound(ctx context.Context, in *intent, f *flight, c *driver.Claim) (Decision, error) {
	p := &in.op.policy
	c.Lease = p.Timeout // there is no heartbeat, and nobody sees the claim before it is committed as ended
	patience := g.opts.StoreTimeout + p.LockWait
	if !g.bound.Commits {
		patience = p.Timeout // the caller's transaction waits as its server is told to
	}
	detached := newBounded(ctx, patience)
	defer detached.cancel()
	for try := 0; ; try++ {
		begun := time.Now()
		store, err := g.bound.Begin(detached)
		var reply driver.Claimed
		if err == nil {
			reply, err = timed(detached, g, "claim", p.Name, func(ctx context.Context) (driver.Claimed, error) { return store.Claim(ctx, *c) })
		}
		switch {
		case err == nil && reply.Verdict != driver.GotClaim:
			return in.op.decide(reply.Verdict, &reply.Record, reply.Now)
		case err == nil:
			a := &Attempt{guard: g, op: in.op, flight: f, key: in.key, claim: *c, begun: begun, store: store, inTx: true}
			a.claimed(&reply)
			a.start(ctx)
			return Decision{Kind: KindRun, Attempt: a, Number: a.number}, nil
		case errors.Is(err, driver.ErrLocked):
			return Decision{Kind: KindInFlight, RetryAfter: time.Second}, nil
		case !g.bound.Commits || try == maxTxTries || !again(err) || ctx.Err() != nil || detached.Err() != nil || pause(detached, backoff(try)/4, nil) != nil:
			return Decision{}, txError(err)
		}
	}
}

// again reports whether a new transaction may fare better.
func again(err error) bool {
	for _, lasting := range [...]error{driver.ErrStoreFull, driver.ErrTooLong, driver.ErrDamaged, driver.ErrOtherDatabase} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// txError says what an error of a bound store means for the caller: the transaction is over, and nothing happened in it.
func txError(err error) error {
	var known *Error
	switch {
	case errors.As(err, &known), errors.Is(err, driver.ErrOtherDatabase):
		return err
	case errors.Is(err, driver.ErrStoreFull):
		return &Error{Code: CodeStoreFull, RetryAfter: time.Second, Cause: err}
	case errors.Is(err, driver.ErrTooLong):
		return &Error{Code: CodeKeyInvalid, Cause: err}
	case errors.Is(err, driver.ErrDamaged):
		return &Error{Code: CodeCorruptRecord, Cause: err}
	}
	return &Error{Code: CodeStoreUnavailable, RetryAfter: time.Second, Cause: err}
}
