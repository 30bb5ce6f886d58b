package oncesql

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// Join runs fn at most once for the call's key inside a transaction that the caller has begun and commits. fn works in that
// transaction, and must neither commit it nor roll it back. What Join returns holds only if the caller commits, a replay too.
//
// The work stands behind a savepoint: after an error of fn the transaction goes on without what fn wrote, and the record says
// how it ended. A duplicate waits for another transaction's claim as long as the server's own lock wait. On MySQL the session's
// LAST_INSERT_ID() is the claim's afterwards.
//
// fn must return the error of a deadlock, as in Do. Errors are those of Do. ErrConflict, inside ErrStoreUnavailable, says that the transaction is lost: roll it back and begin
// anew.
func Join[T any](ctx context.Context, op *onceward.Op, exec Executor, call onceward.Call, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	store, err := power(op)
	if err != nil {
		return zero, err
	}
	if exec == nil || fn == nil {
		return zero, errors.New("onceward: oncesql.Join needs a transaction and a function")
	}
	if _, ok := exec.(Beginner); ok {
		return zero, fmt.Errorf("onceward: oncesql.Join needs a transaction, and %T is a handle that begins them: use oncesql.Do, or begin one", exec)
	}
	j := &joined{Store: store.Bind(tx{exec}, 0), exec: exec, check: func(ctx context.Context) error { return store.Check(ctx, tx{exec}) }}
	return onceward.DoOn(ctx, op.Guard().On(onceward.Bound{Begin: j.begin}), op, call, fn)
}

// joined is a bound store whose ends leave the transaction open. The savepoint stands behind the claim, which nobody can take
// while what the work wrote is rolled back.
type joined struct {
	driver.Store
	exec      Executor
	savepoint string
	check     func(context.Context) error
}

func (j *joined) begin(ctx context.Context) (driver.Store, error) { return j, j.check(ctx) }

// Claim implements driver.Store.
func (j *joined) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	got, err := j.Store.Claim(ctx, c)
	if err == nil && got.Verdict == driver.GotClaim {
		j.savepoint = "onceward_" + hex.EncodeToString(c.Owner[:6]) // a name of its own: calls may stand inside each other
		err = j.do(ctx, "SAVEPOINT ")
	}
	return got, err
}

// Finish implements driver.Store. When the end can't be written, the transaction holds a claim that nobody will end: it is
// lost.
func (j *joined) Finish(ctx context.Context, f driver.Finish) (done driver.Finished, err error) {
	if f.Outcome.Status != driver.Success {
		err = j.do(ctx, "ROLLBACK TO SAVEPOINT ")
	}
	if err == nil {
		done, err = j.Store.Finish(ctx, f)
	}
	if err == nil {
		err = j.do(ctx, "RELEASE SAVEPOINT ")
	}
	if err != nil {
		_ = j.do(ctx, "ROLLBACK TO SAVEPOINT ")
		return driver.Finished{}, fmt.Errorf("%w: %w", driver.ErrConflict, err)
	}
	return done, nil
}

func (j *joined) do(ctx context.Context, what string) error {
	_, err := j.exec.ExecContext(ctx, what+j.savepoint)
	return err
}
