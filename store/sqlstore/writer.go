package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// writer is the one connection that writes. Only the leader of a group uses it.
type writer struct {
	store   *Store
	session session
}

// tx is the writer while it has something to write, with the instant of its decisions: the host's clock, in milliseconds,
// read after the lock is held except by a rider that goes alone.
type tx struct {
	session *session
	now     time.Time
}

func (w *writer) tx() *tx { return &tx{&w.session, time.Now().UTC().Truncate(time.Millisecond)} }

// changes runs a statement that changes one row or none.
func (t *tx) changes(name string, args ...sqldriver.Value) (changed bool, err error) {
	n, err := t.session.exec(name, args...)
	return n > 0, err
}

// insert makes a Processing record and reports whether it did: not where there is a row, nor where the fence floor has
// reached the limit.
func (t *tx) insert(r *driver.Record, limit int64) (inserted bool, err error) {
	return t.changes("insert", append(insertArgs(r), limit)...)
}

// write applies what was decided on the row that was read in this transaction.
func (t *tx) write(r *driver.Record, w state.Write) error {
	if w == state.Insert {
		if _, err := t.insert(r, math.MaxInt64); err != nil || r.Status == driver.Processing {
			return err
		}
		w = state.Update // to the end with which it was read as missing
	}
	if w == state.Keep {
		return nil
	}
	_, err := t.changes("update", updateArgs(r)...)
	return err
}

// readWithFloor fills a record that has its identity, and returns the fence below which no new claim may begin.
func (t *tx) readWithFloor(rec *driver.Record) (found bool, floor int64, err error) {
	if found, _, err = t.session.read(rec); err != nil {
		return false, 0, err
	}
	known := false
	err = t.session.query("floor", 1, func(row []sqldriver.Value) error {
		floor, known = row[0].(int64)
		return nil
	})
	if err == nil && !known {
		err = errors.New("onceward: the store's fence floor is gone: its first migration is not whole")
	}
	return found, floor, err
}

// run answers a batch: one call straight through where a statement is enough, everything else in a transaction.
func (w *writer) run(batch []*rider) {
	if len(batch) == 1 {
		if done, err := w.alone(batch[0]); err != nil {
			w.fail(batch, err)
			return
		} else if done {
			return
		}
	}
	w.runTogether(batch)
}

// runTogether commits a batch. One rider's error must not fail the others: after a rollback each goes alone. That is safe
// after any error, a failed COMMIT too, because a decision that is made again is the same decision. A transaction that
// could not even begin is everybody's error: nobody waits for the same lock once for each rider.
func (w *writer) runTogether(batch []*rider) {
	begun, err := w.commit(batch)
	if err == nil {
		return
	}
	if begun && len(batch) > 1 {
		for i := range batch {
			if begun, err = w.commit(batch[i : i+1]); !begun {
				w.fail(batch[i:], err)
				return
			} else if err != nil {
				w.fail(batch[i:i+1], err)
			}
		}
		return
	}
	w.fail(batch, err)
}

// alone runs a rider's one statement, which commits by itself.
func (w *writer) alone(r *rider) (done bool, err error) {
	if err := w.open(context.Background()); err != nil {
		return false, err
	}
	err = w.session.use(func() error {
		return w.store.whileBusy(func() (err error) {
			done, err = r.try(w.tx())
			return err
		})
	})
	if err != nil && !w.store.dialect.Busy(err) {
		w.session.close()
	}
	return done, err
}

func (w *writer) fail(riders []*rider, err error) {
	if w.store.dialect.Full(err) {
		err = fmt.Errorf("%w: %w", driver.ErrStoreFull, err)
	}
	for _, r := range riders {
		r.err = err
	}
}

// commit runs the batch in one transaction. It does not obey a caller's context: a transaction is short, and its riders
// are many.
func (w *writer) commit(batch []*rider) (begun bool, err error) {
	if err := w.open(context.Background()); err != nil {
		return false, err
	}
	whole := false // the session can be used again
	defer func() {
		if !whole {
			w.session.close()
		}
	}()
	s := &w.session
	err = s.use(func() error {
		if err := w.begin(); err != nil {
			whole = w.store.dialect.Busy(err)
			return fmt.Errorf("onceward: the store's writer can't begin: %w", err)
		}
		begun = true
		err := w.decide(batch)
		if err == nil {
			_, err = s.exec("commit")
		}
		if err == nil {
			whole = true
			return nil
		}
		_, rollbackErr := s.exec("rollback")
		whole = rollbackErr == nil // some errors end a transaction by themselves; a fresh connection is certain
		return err
	})
	return begun, err
}

// decide lets each rider decide and write, at one instant.
func (w *writer) decide(batch []*rider) error {
	t := w.tx()
	for _, r := range batch {
		if r.err = r.do(t); r.err != nil {
			return r.err
		}
	}
	return nil
}

// probe shows that the store can be written, without writing.
func (w *writer) probe(ctx context.Context) error {
	if err := w.open(ctx); err != nil {
		return err
	}
	s := &w.session
	return s.use(func() error {
		if err := w.begin(); err != nil {
			return err
		}
		_, err := s.exec("touch")
		_, rollbackErr := s.exec("rollback")
		return errors.Join(err, rollbackErr)
	})
}

// begin takes the write lock.
func (w *writer) begin() error {
	return w.store.whileBusy(func() error {
		_, err := w.session.exec("begin")
		return err
	})
}

// open takes the writing connection, if it is not there.
func (w *writer) open(ctx context.Context) error {
	return w.session.open(ctx, w.store, w.store.durable, "begin", "touch", "floor", "read", "get", "insert", "update", "finish", "renew", "commit", "rollback")
}
