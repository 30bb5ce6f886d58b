package oncesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// Step is onceward.Step in a transaction of db, which must be of the database of the guard's store: what fn writes and the
// step's result are committed together, so that the step is either done and remembered or has left nothing. It is the shape
// for "call others, then write the own rows": Do → Step("bank") → oncesql.Step("settle") → the end of Do.
//
// fn must neither commit nor roll back, and must return the error of a deadlock. After any error everything is rolled back,
// and unless fn said otherwise the next attempt runs it again. The result is written last, so that the record's row is locked
// only while the transaction commits; where the claim is lost by then, everything is rolled back. On SQLite whoever writes
// locks the whole file, and heartbeats wait for it: there fn must be done within a lease.
//
// Errors are those of onceward.Step, and these:
//   - ErrStoreUnavailable, with ErrConflict inside when the database chose this transaction as a victim: nothing happened;
//   - ErrUnknown: the reply to COMMIT was lost and the database did not come back to say what became of it;
//   - ErrOtherDatabase: nothing happened, and never will.
func Step[T any](ctx context.Context, db Beginner, name string, fn func(context.Context, *sql.Tx) (T, error)) (T, error) {
	var zero T
	a, ok := onceward.FromContext(ctx)
	if !ok {
		return zero, onceward.ErrNoAttempt
	}
	store, err := power(a.Op())
	if err != nil {
		return zero, err
	}
	if db == nil || fn == nil {
		return zero, errors.New("onceward: oncesql.Step needs a database and a function")
	}
	t := newTransaction(ctx, a.Op(), store, db)
	return onceward.StepIn(ctx, name, onceward.StepTx{
		Begin: func(ctx context.Context) (driver.Store, error) {
			if err := t.begin(ctx); err != nil {
				return nil, err
			}
			return store.Bind(exec(t.tx), 0), nil
		},
		Commit: func() error {
			if err := t.commit(); err != nil {
				return fmt.Errorf("onceward: COMMIT: %w", err)
			}
			return nil
		},
		Rollback: t.rollback,
	}, func(ctx context.Context) (T, error) { return fn(ctx, t.tx) })
}
