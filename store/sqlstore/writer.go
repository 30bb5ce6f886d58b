package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onceward/onceward/driver"
)

// writer is the one connection that writes. Only the leader of a group uses it.
type writer struct {
	store *Store
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// tx is an open transaction on the writer, with the instant and the fence floor of its decisions.
type tx struct {
	w     *writer
	now   time.Time
	floor int64
}

// run commits a batch. One rider's error must not fail the others: after a rollback each goes alone. That is safe after
// any error, a failed COMMIT too, because a decision that is made again is the same decision.
func (w *writer) run(batch []*rider) {
	if len(batch) > 1 && w.commit(batch) == nil {
		return
	}
	for _, r := range batch {
		for try := 0; ; try++ {
			err := w.commit([]*rider{r})
			if err == nil {
				break // r.err is the work's own answer
			}
			if r.err = err; try == 4 || !w.store.dialect.Busy(err) {
				break
			}
			time.Sleep(rand.N(10 * time.Millisecond << try)) // another process writes
		}
		if w.store.dialect.Full(r.err) {
			r.err = fmt.Errorf("%w: %w", driver.ErrStoreFull, r.err)
		}
	}
}

// commit runs the batch in one transaction. It does not obey a caller's context: a transaction is short, and its riders
// are many.
func (w *writer) commit(batch []*rider) (err error) {
	ctx := context.Background()
	if err := w.connect(ctx); err != nil {
		return err
	}
	if _, err := w.stmts["begin"].ExecContext(ctx); err != nil {
		w.discard()
		return fmt.Errorf("onceward: begin: %w", err)
	}
	committed := false
	defer func() {
		if committed {
			return
		}
		if _, rollbackErr := w.conn.ExecContext(ctx, "ROLLBACK"); rollbackErr != nil {
			w.discard() // some errors end the transaction by themselves; a fresh connection is certain
		}
	}()
	t := &tx{w: w}
	var ms int64
	if err := w.stmts["clock"].QueryRowContext(ctx).Scan(&ms, &t.floor); err != nil {
		return fmt.Errorf("onceward: clock: %w", err)
	}
	t.now = time.UnixMilli(ms).UTC()
	for _, r := range batch {
		if r.err = r.work(t); r.err != nil && !answered(r.err) {
			return r.err
		}
	}
	if _, err := w.stmts["commit"].ExecContext(ctx); err != nil {
		return fmt.Errorf("onceward: commit: %w", err)
	}
	committed = true
	return nil
}

// answered reports whether err is a decision of a store call rather than a fault of the database.
func answered(err error) bool {
	return errors.Is(err, driver.ErrLeaseLost) || errors.Is(err, driver.ErrNotFound)
}

// connect takes a connection out of the pool for good, makes sure that it is durable, and prepares its statements.
func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.store.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("onceward: the store's writer can't connect: %w", err)
	}
	if err := durable(ctx, conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	stmts := map[string]*sql.Stmt{}
	for _, name := range [...]string{"read", "insert", "update", "finish", "renew", "clock", "begin", "commit"} {
		stmt, err := conn.PrepareContext(ctx, w.store.sql[name]) //nolint:sqlclosecheck // kept as long as its connection
		if err != nil {
			return errors.Join(fmt.Errorf("onceward: prepare %s: %w", name, err), conn.Close())
		}
		stmts[name] = stmt
	}
	w.conn, w.stmts = conn, stmts
	return nil
}

// discard closes the connection instead of giving it back to the pool.
func (w *writer) discard() {
	if w.conn == nil {
		return
	}
	_ = w.conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	_ = w.conn.Close()
	w.conn, w.stmts = nil, nil
}

// read returns the record, nil when there is none.
func (t *tx) read(id driver.ID) (*driver.Record, error) {
	rec, _, err := scanOne(t.w.stmts["read"].QueryRowContext(context.Background(), id[:]))
	return rec, err
}

// insert reports whether there was no row.
func (t *tx) insert(r *driver.Record) (inserted bool, err error) {
	n, err := t.exec("insert", insertArgs(r))
	return n == 1, err
}

func (t *tx) exec(name string, args []any) (affected int64, err error) {
	res, err := t.w.stmts[name].ExecContext(context.Background(), args...)
	if err == nil {
		affected, err = res.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("onceward: %s: %w", name, err)
	}
	return affected, nil
}

func scanOne(r *sql.Row) (*driver.Record, time.Time, error) {
	var out row
	if err := r.Scan(append([]any{&out.now}, out.targets()...)...); err != nil {
		return nil, time.Time{}, fmt.Errorf("onceward: read: %w", err)
	}
	rec, err := out.record()
	return rec, out.clock(), err
}
