package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/onceward/onceward/driver"
)

// writer is the one connection that writes. Only the leader of a group uses it.
type writer struct {
	store   *Store
	session session
}

// tx is an open transaction on the writer, with the instant and the fence floor of its decisions.
type tx struct {
	session *session
	now     time.Time
	floor   int64
}

// run commits a batch. One rider's error must not fail the others: after a rollback each goes alone. That is safe after
// any error, a failed COMMIT too, because a decision that is made again is the same decision. A transaction that could not
// even begin is everybody's error: nobody waits for the same lock once for each rider.
func (w *writer) run(batch []*rider) {
	begun, err := w.commit(batch)
	if err == nil {
		return // each r.err is its work's own answer
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

// decide lets each rider decide and write, at one instant. What a rider answers by itself is not an error here.
func (w *writer) decide(batch []*rider) error {
	t := &tx{session: &w.session}
	err := w.session.query("clock", 2, func(row []sqldriver.Value) error {
		ms, ok := row[0].(int64)
		floor, ok2 := row[1].(int64)
		if !ok || !ok2 {
			return errors.New("the clock or the fence floor is no number")
		}
		t.now, t.floor = time.UnixMilli(ms).UTC(), floor
		return nil
	})
	if err == nil && t.now.IsZero() {
		err = errors.New("onceward: the store's fence floor is gone: its first migration is not whole")
	}
	if err != nil {
		return err
	}
	for _, r := range batch {
		if r.err = r.do(t); r.err != nil && !errors.Is(r.err, driver.ErrLeaseLost) && !errors.Is(r.err, driver.ErrNotFound) {
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
	return w.session.open(ctx, w.store, w.store.durable, "begin", "touch", "clock", "read", "get", "insert", "update", "finish", "renew", "commit", "rollback")
}
