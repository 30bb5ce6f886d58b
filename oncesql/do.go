package oncesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
	"weak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// Do runs fn at most once for the call's key, in a transaction of db that holds the record too, and gives every duplicate
// its first result. The operation must be of the transaction kind (Operation.Tx).
//
// Duplicates in this process wait, without a connection, until the transaction has ended, and then get its result or run;
// those elsewhere wait in the database at most Operation.LockWait and are then in flight. A claim that loses against another
// transaction before fn began is made anew, in a transaction of its own; fn is run again only as Operation.Reruns says.
//
// fn must neither commit nor roll back, and must return the error of a deadlock (MySQL's 1213): the server has rolled
// everything back by then, and what fn would write afterwards commits by itself. Its context is that of onceward.Do: a caller that hangs up cancels nothing.
//
// Errors are those of onceward.Do, and these:
//   - fn's own error: everything was rolled back, a retry runs again;
//   - *FinalError: what fn wrote is rolled back, the answer no is kept (see Operation.Savepoint);
//   - ErrUnknown: fn said so by onceward.Unknown, for which set Operation.Savepoint, or the reply to COMMIT was lost and the database did not come back to say
//     what became of it: a retry with the same key finds out;
//   - ErrStoreUnavailable: the database can't be reached, or chose this transaction as a victim; nothing happened;
//   - ErrOtherDatabase, ErrInsideTx: nothing happened, and never will.
func Do[T any](ctx context.Context, op *onceward.Op, db Beginner, call onceward.Call, fn func(context.Context, *sql.Tx) (T, error)) (T, error) {
	var zero T
	store, err := power(op)
	if err != nil {
		return zero, err
	}
	if db == nil || fn == nil {
		return zero, errors.New("onceward: oncesql.Do needs a database and a function")
	}
	policy := op.Policy()
	for rerun := 0; ; rerun++ {
		v, err := once(ctx, op, store, db, call, fn)
		if err == nil || rerun >= policy.Reruns || !conflict(err) {
			return v, err
		}
		select {
		case <-time.After(rand.N(20 * time.Millisecond << min(rerun, 5))):
		case <-ctx.Done():
			return v, err
		}
	}
}

func once[T any](ctx context.Context, op *onceward.Op, store driver.TxStore, db Beginner, call onceward.Call, fn func(context.Context, *sql.Tx) (T, error)) (T, error) {
	policy := op.Policy()
	// The transaction outlives the caller, and ends with the attempt.
	life, cancel := context.WithTimeout(context.WithoutCancel(ctx), policy.Timeout)
	defer cancel()
	t := newTransaction(life, op, store, db)
	defer t.rollback() // of a duplicate's claim; a panic's and a Goexit's too
	return onceward.DoOn(ctx, op.Guard().On(onceward.Bound{Begin: t.bind, Commits: true}), op, call,
		func(ctx context.Context) (T, error) { return fn(ctx, t.tx) })
}

// transaction is the one that is open for a call, one after another.
type transaction struct {
	db    Beginner
	store driver.TxStore
	wait  time.Duration
	keep  bool            // the claim, by a savepoint
	life  context.Context //nolint:containedctx // of the transactions, which begin later
	tx    *sql.Tx
	once  func(check func() error) error // runs a check of the database, once where that is enough
}

func newTransaction(life context.Context, op *onceward.Op, store driver.TxStore, db Beginner) *transaction {
	policy := op.Policy()
	t := &transaction{db: db, store: store, wait: policy.LockWait, keep: policy.Savepoint, life: life, once: func(check func() error) error { return check() }}
	if handle, ok := db.(*sql.DB); ok { // always of the same database
		t.once = func(check func() error) error { return op.Guard().Once(weak.Make(handle), check) }
	}
	return t
}

// bind opens a transaction and returns the store bound to it.
func (t *transaction) bind(ctx context.Context) (driver.Store, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	return &ending{t.store.Bind(exec(t.tx), t.wait), t}, nil
}

// begin opens a transaction in place of the one before.
func (t *transaction) begin(ctx context.Context) error {
	t.rollback()
	if err := t.once(func() error { return t.check(ctx) }); err != nil {
		return err
	}
	life, cancel := context.WithCancel(t.life)
	stop := context.AfterFunc(ctx, cancel) // ctx bounds the wait for a connection
	tx, err := t.db.BeginTx(life, nil)
	if !stop() && err == nil {
		_ = tx.Rollback()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return fmt.Errorf("onceward: oncesql can't begin a transaction: %w", err)
	}
	t.tx = tx
	return nil
}

// check makes sure that db is the store's database, in a transaction of its own: a read in the work's would take its snapshot
// before the claim has waited.
func (t *transaction) check(ctx context.Context) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("onceward: oncesql can't begin a transaction: %w", err)
	}
	return errors.Join(t.store.Check(ctx, exec(tx)), tx.Rollback())
}

// rollback ends the transaction that is open, if there is one.
func (t *transaction) rollback() {
	if t.tx != nil {
		_ = t.tx.Rollback() // the server does it by itself when the connection is gone
		t.tx = nil
	}
}

// commit commits, and never a second time.
func (t *transaction) commit() error {
	tx := t.tx
	t.tx = nil
	return tx.Commit()
}

func exec(t *sql.Tx) driver.Tx { return tx{t} }

// ending is a bound store whose Finish ends the transaction.
type ending struct {
	driver.Store
	t *transaction
}

const savepoint = "onceward_claim"

// Claim implements driver.Store. Only a claim keeps the transaction, and its connection.
func (e *ending) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	got, err := e.Store.Claim(ctx, c)
	if err == nil && got.Verdict == driver.GotClaim && e.t.keep {
		_, err = e.t.tx.ExecContext(ctx, "SAVEPOINT "+savepoint)
	}
	if err != nil || got.Verdict != driver.GotClaim {
		e.t.rollback()
	}
	return got, err
}

// Finish implements driver.Store. A success is written and committed. After any other end what the work wrote is rolled back;
// an end that duplicates have to know of is then recorded in a transaction of its own.
func (e *ending) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	switch {
	case f.Outcome.Status == driver.Success:
		return e.succeed(ctx, f)
	case f.Outcome.Failure == driver.Retryable:
		e.t.rollback()
		return nothing(&f), nil
	case e.t.keep && e.t.tx != nil:
		if _, err := e.t.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
			break
		}
		// The transaction's time may end just now; then nothing of it is left, and the end is recorded like any other.
		if done, err := e.succeed(ctx, f); err == nil || errors.Is(err, onceward.ErrUnknown) {
			return done, err
		}
	}
	e.t.rollback()
	return e.t.record(ctx, f)
}

// nothing is the end of an attempt of which nothing is left.
func nothing(f *driver.Finish) driver.Finished {
	return driver.Finished{Applied: true, Record: driver.Record{
		Status: driver.Fail, Failure: driver.Retryable, Error: f.Outcome.Error, Attempt: f.Attempt, Fence: f.Fence}}
}

// succeed writes an end beside what the transaction holds, and commits both.
func (e *ending) succeed(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	done, err := e.Store.Finish(ctx, f)
	if errors.Is(err, driver.ErrLeaseLost) {
		return driver.Finished{}, e.t.gone(ctx, f)
	}
	if err != nil || !done.Applied {
		e.t.rollback()
		return done, err
	}
	if err := e.t.commit(); err != nil {
		return e.t.settle(ctx, f, err)
	}
	return done, nil
}

// gone ends an attempt whose transaction was rolled back under the work: MySQL does so at a deadlock and goes on in autocommit.
// Some of what the work wrote is not there, and some may be: nobody can tell, so it is not run again.
func (t *transaction) gone(ctx context.Context, f driver.Finish) error {
	const why = "the transaction was rolled back under the work, and what it wrote afterwards may have been committed"
	f.Outcome = driver.Outcome{Status: driver.Fail, Failure: driver.Unknown, Error: why}
	t.rollback()
	_, err := t.record(ctx, f)
	return &onceward.Error{Code: onceward.CodeOutcomeUnknown, RetryAfter: time.Second, Detail: why, Cause: err}
}

// settle finds out what became of a COMMIT without an answer, by claiming again: the claim waits for the old transaction, and
// then either finds its record or shows that it is not there and will never be.
func (t *transaction) settle(ctx context.Context, f driver.Finish, lost error) (driver.Finished, error) {
	t.life = ctx // the work's time may be over
	defer t.rollback()
	for try := 0; ; try++ {
		got, err := t.claim(ctx, &f.Claim)
		switch {
		case err == nil && got.Verdict == driver.GotClaim:
			return driver.Finished{}, lost
		case err == nil:
			return driver.Finished{Applied: got.Record.Owner == f.Claim.Owner, Record: got.Record, Now: got.Now}, nil
		case !pause(ctx, try):
			return driver.Finished{}, &onceward.Error{Code: onceward.CodeOutcomeUnknown, RetryAfter: time.Second,
				Detail: "the answer to COMMIT was lost, and the database does not say what became of it", Cause: errors.Join(lost, err)}
		}
	}
}

// record writes the end of an attempt in a transaction of its own, unless somebody else was faster.
func (t *transaction) record(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	t.life = ctx // the work's time may be over
	defer t.rollback()
	for try := 0; ; try++ {
		got, err := t.claim(ctx, &f.Claim)
		if err == nil && got.Verdict != driver.GotClaim {
			return driver.Finished{Applied: got.Record.Owner == f.Claim.Owner && f.Outcome.Same(&got.Record), Record: got.Record, Now: got.Now}, nil
		}
		var done driver.Finished
		if err == nil {
			f.Fence, f.Attempt, f.Died = got.Record.Fence, got.Record.Attempt, got.Record.Died
			done, err = t.store.Bind(exec(t.tx), t.wait).Finish(ctx, f)
		}
		if err == nil {
			err = t.commit()
		}
		if err == nil {
			return done, nil
		}
		if !pause(ctx, try) {
			return driver.Finished{}, err
		}
	}
}

func (t *transaction) claim(ctx context.Context, c *driver.Claim) (driver.Claimed, error) {
	if err := t.begin(ctx); err != nil {
		return driver.Claimed{}, err
	}
	return t.store.Bind(exec(t.tx), t.wait).Claim(ctx, *c)
}

// pause waits a moment; false when there is no time left.
func pause(ctx context.Context, try int) bool {
	select {
	case <-time.After(5*time.Millisecond<<min(try, 6) + rand.N(5*time.Millisecond)):
		return true
	case <-ctx.Done():
		return false
	}
}
