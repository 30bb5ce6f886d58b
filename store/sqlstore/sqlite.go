package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"
)

// create runs the migrations under the write lock; another process that was faster is fine.
func (s *Store) create(ctx context.Context, conn *sql.Conn) error {
	names, err := fs.Glob(files, "migrations/sqlite/*.sql")
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		_, up, _ := strings.Cut(string(text), "-- +goose Up")
		up, _, _ = strings.Cut(up, "-- +goose Down")
		all.WriteString(up)
	}
	err = s.whileBusy(atOpen, func() error {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return fmt.Errorf("onceward: the store can't be written: check the file's and its folder's permissions: %w", err)
	}
	_, found, err := s.schemaVersion(ctx, conn)
	if err == nil && !found {
		_, err = conn.ExecContext(ctx, strings.ReplaceAll(all.String(), "{prefix}", s.tables))
	}
	if err == nil {
		if _, err = conn.ExecContext(ctx, "COMMIT"); err == nil {
			return nil
		}
	}
	_, rollbackErr := conn.ExecContext(ctx, "ROLLBACK")
	return errors.Join(fmt.Errorf("onceward: the store's tables can't be made: %w", err), rollbackErr)
}

// durable makes a connection keep what it acknowledges, WAL with synchronous=FULL, and wait for other processes.
func (s *Store) durable(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 1000"); err != nil {
		return fmt.Errorf("onceward: PRAGMA busy_timeout: %w", err)
	}
	var mode string
	err := s.whileBusy(atOpen, func() error { return conn.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode) })
	if err != nil {
		return fmt.Errorf("onceward: the store can't be switched to WAL: check that it is a SQLite file, and that it and its folder can be written: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("onceward: the store's journal mode is %q and must be wal: use a file on a local disk, not memory", mode)
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = FULL"); err != nil {
		return fmt.Errorf("onceward: PRAGMA synchronous: %w", err)
	}
	return nil
}

// How long another process's lock is waited for: at Open many processes may make one file's tables; a call must be answered
// within the time that a guard gives it.
const (
	atOpen   = 30 * time.Second
	inACall  = 3500 * time.Millisecond
	busyStep = 10 * time.Millisecond
)

// whileBusy tries again while another process holds a lock: SQLite waits for a second by itself, and not for every kind.
func (s *Store) whileBusy(patience time.Duration, f func() error) (err error) {
	until := time.Now().Add(patience)
	for try := 1; ; try++ {
		if err = f(); err == nil || !s.dialect.Busy(err) {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("another process holds a lock on the store: %w", err)
		}
		time.Sleep(rand.N(busyStep << min(try, 4)))
	}
}
