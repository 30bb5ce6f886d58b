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
// Claim and work stand behind a savepoint: after an error of fn the transaction goes on as it was before Join, and an answer
// no (onceward.Final) is kept in it. A duplicate waits for another transaction's claim as long as the server's own lock wait.
//
// Errors are those of Do. ErrConflict, inside ErrStoreUnavailable, says that the transaction is lost: roll it back and begin
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
	j := &joined{Store: store.Bind(tx{exec}, 0), exec: exec, check: func(ctx context.Context) error { return store.Check(ctx, tx{exec}) }}
	return onceward.DoOn(ctx, op.Guard().On(onceward.Bound{Begin: j.begin}), op, call, fn)
}

// joined is a bound store whose ends leave the transaction open.
type joined struct {
	driver.Store
	exec      Executor
	savepoint string
	check     func(context.Context) error
}

func (j *joined) begin(ctx context.Context) (driver.Store, error) { return j, j.check(ctx) }

// Claim implements driver.Store.
func (j *joined) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	j.savepoint = "onceward_" + hex.EncodeToString(c.Owner[:6]) // a name of its own: calls may stand inside each other
	if err := j.do(ctx, "SAVEPOINT "); err != nil {
		return driver.Claimed{}, fmt.Errorf("onceward: oncesql.Join needs an open transaction: %w", err)
	}
	got, err := j.Store.Claim(ctx, c)
	if err == nil && got.Verdict != driver.GotClaim {
		err = j.do(ctx, "RELEASE SAVEPOINT ")
	}
	return got, err
}

// Finish implements driver.Store.
func (j *joined) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	if f.Outcome.Status != driver.Success {
		if err := j.do(ctx, "ROLLBACK TO SAVEPOINT "); err != nil {
			if f.Outcome.Failure == driver.Retryable {
				return nothing(&f), nil // the transaction is lost, and with it everything
			}
			return driver.Finished{}, fmt.Errorf("%w: %w", driver.ErrConflict, err)
		}
		if f.Outcome.Failure == driver.Retryable {
			return nothing(&f), j.do(ctx, "RELEASE SAVEPOINT ")
		}
		got, err := j.Store.Claim(ctx, f.Claim)
		if err != nil {
			return driver.Finished{}, err
		}
		if got.Verdict != driver.GotClaim {
			return driver.Finished{Record: got.Record, Now: got.Now}, nil
		}
		f.Fence, f.Attempt, f.Died = got.Record.Fence, got.Record.Attempt, got.Record.Died
	}
	done, err := j.Store.Finish(ctx, f)
	if err == nil {
		err = j.do(ctx, "RELEASE SAVEPOINT ")
	}
	return done, err
}

func (j *joined) do(ctx context.Context, what string) error {
	_, err := j.exec.ExecContext(ctx, what+j.savepoint)
	return err
}
