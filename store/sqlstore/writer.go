package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/onceward/onceward/driver"
)

// writer is the one connection that writes. Only the leader of a group uses it.
type writer struct {
	store   *Store
	session session
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
		return w.store.whileBusy(inACall, func() (err error) {
			done, err = r.alone(&w.session)
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
			_, err = s.exec(context.Background(), "commit")
		}
		if err == nil {
			whole = true
			return nil
		}
		_, rollbackErr := s.exec(context.Background(), "rollback")
		whole = rollbackErr == nil // some errors end a transaction by themselves; a fresh connection is certain
		return err
	})
	return begun, err
}

// decide lets each rider decide and write.
func (w *writer) decide(batch []*rider) error {
	for _, r := range batch {
		if r.err = r.inside(&w.session); r.err != nil {
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
		_, err := s.exec(ctx, "touch")
		_, rollbackErr := s.exec(context.Background(), "rollback")
		return errors.Join(err, rollbackErr)
	})
}

// begin takes the write lock.
func (w *writer) begin() error {
	return w.store.whileBusy(inACall, func() error {
		_, err := w.session.exec(context.Background(), "begin")
		return err
	})
}

// open takes the writing connection, if it is not there.
func (w *writer) open(ctx context.Context) error {
	return w.session.open(ctx, w.store, w.store.durable)
}
