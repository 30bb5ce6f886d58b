package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

// Bind implements driver.TxStore.
func (s *Store) Bind(tx driver.Tx, lockWait time.Duration) driver.Store {
	b := &Store{db: s.db, dialect: s.dialect, id: s.id, mariadb: s.mariadb, floor: s.floor, sql: s.sql, reading: "read", bound: true}
	if s.dialect != dialect.SQLite {
		b.reading = "read_locked" // the winner is read under a lock: a snapshot may be older than it
	}
	if lockWait > 0 {
		b.lockWait = strconv.FormatInt(max(lockWait.Milliseconds(), 1), 10)
		if s.dialect == dialect.MySQL { // which knows whole seconds
			b.lockWait = strconv.FormatInt(int64((lockWait+time.Second-1)/time.Second), 10)
		}
	}
	b.runner = &bound{store: b, tx: tx}
	return b
}

// Check implements driver.TxStore.
func (s *Store) Check(ctx context.Context, tx driver.Tx) error {
	b := &bound{store: s, tx: tx}
	id := ""
	err := b.query(ctx, "whose", func(row []sqldriver.Value) error {
		id = text(row[0])
		return nil
	})
	if err == nil && id != s.id.String() {
		err = driver.ErrOtherDatabase
	}
	return b.told(err)
}

// bound runs the calls in a caller's transaction.
type bound struct {
	store *Store
	tx    driver.Tx
}

func (b *bound) read(ctx context.Context, f func(context.Context, conn) error) error {
	return b.told(f(ctx, b))
}

func (b *bound) write(ctx context.Context, c call) error { return b.told(c.run(ctx, b)) }

func (*bound) close() {}

// told says what an error means for the transaction.
func (b *bound) told(err error) error {
	d := b.store.dialect
	switch {
	case err == nil:
		return nil
	case d.NoTable(err):
		return fmt.Errorf("%w: %w", driver.ErrOtherDatabase, err)
	case errors.Is(err, errAgain), d.Conflict(err), d == dialect.SQLite && d.Busy(err):
		return fmt.Errorf("%w: %w", driver.ErrConflict, err)
	case d.Busy(err):
		return fmt.Errorf("%w: %w", driver.ErrLocked, err)
	case d.Full(err):
		return fmt.Errorf("%w: %w", driver.ErrStoreFull, err)
	}
	return err
}

// exec implements conn.
func (b *bound) exec(ctx context.Context, name string, args ...sqldriver.Value) (driver.TxResult, error) {
	text := b.store.sql[name]
	if name == "insert" && b.store.mariadb && b.store.lockWait != "" {
		text = "SET STATEMENT innodb_lock_wait_timeout = " + b.store.lockWait + " FOR " + text
	}
	done, err := b.tx.Exec(ctx, text, anys(args)...)
	if err != nil {
		err = fmt.Errorf("onceward: %s: %w", name, err)
	}
	return done, err
}

// query implements conn.
func (b *bound) query(ctx context.Context, name string, each func(row []sqldriver.Value) error, args ...sqldriver.Value) error {
	var row []sqldriver.Value
	err := b.tx.Query(ctx, b.store.sql[name], func(values []any) error {
		row = row[:0]
		for _, v := range values {
			row = append(row, v)
		}
		return each(row)
	}, anys(args)...)
	if err != nil {
		err = fmt.Errorf("onceward: %s: %w", name, err)
	}
	return err
}

func anys(args []sqldriver.Value) []any {
	out := make([]any, len(args))
	for i, v := range args {
		out[i] = v
	}
	return out
}
