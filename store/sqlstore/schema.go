package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"time"
)

// SchemaVersion is the version of the tables that this package works on.
const SchemaVersion = 1

// Errors of Open about the tables.
var (
	ErrSchemaOld = errors.New("onceward: the store's tables are older than this program: run onceward migrate up --store …")
	ErrSchemaNew = errors.New("onceward: the store's tables are newer than this program: run the program that migrated them, or a newer one")
)

// prepareSchema makes the tables in an empty SQLite file, and otherwise checks their version.
func (s *Store) prepareSchema(ctx context.Context, prefix string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("onceward: the store can't be opened: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := s.durable(ctx, conn); err != nil {
		return err
	}
	version, found, err := schemaVersion(ctx, conn, prefix)
	if err == nil && !found {
		if err = s.create(ctx, conn, prefix); err == nil {
			version, _, err = schemaVersion(ctx, conn, prefix)
		}
	}
	switch {
	case err != nil:
		return err
	case version < SchemaVersion:
		return fmt.Errorf("%w (they have version %d, it needs %d)", ErrSchemaOld, version, SchemaVersion)
	case version > SchemaVersion:
		return fmt.Errorf("%w (they have version %d, it knows %d)", ErrSchemaNew, version, SchemaVersion)
	}
	return nil
}

// schemaVersion returns the version of the tables; found is false when there are none.
func schemaVersion(ctx context.Context, conn *sql.Conn, prefix string) (version int, found bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?", prefix+"meta").Scan(&found)
	if err != nil {
		return 0, false, fmt.Errorf("onceward: the store can't be read: is it a SQLite file? %w", err)
	}
	if !found {
		return 0, false, nil
	}
	var text string
	//nolint:gosec // the prefix was checked to be an identifier
	if err := conn.QueryRowContext(ctx, "SELECT value FROM "+prefix+"meta WHERE name = 'schema'").Scan(&text); err != nil {
		return 0, true, fmt.Errorf("onceward: the store's version can't be read: %w", err)
	}
	if version, err = strconv.Atoi(text); err != nil {
		return 0, true, fmt.Errorf("onceward: the store's version is %q, not a number", text)
	}
	return version, true, nil
}

// create runs the first migration under the write lock; another process that was faster is fine.
func (s *Store) create(ctx context.Context, conn *sql.Conn, prefix string) error {
	text, err := files.ReadFile(path.Join("migrations", s.dialect.String(), "00001_records.sql"))
	if err != nil {
		return err
	}
	_, up, _ := strings.Cut(string(text), "-- +goose Up")
	up, _, _ = strings.Cut(up, "-- +goose Down")
	err = s.whileBusy(func() error {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return fmt.Errorf("onceward: the store can't be written: check the file's and its folder's permissions: %w", err)
	}
	_, found, err := schemaVersion(ctx, conn, prefix)
	if err == nil && !found {
		_, err = conn.ExecContext(ctx, strings.ReplaceAll(up, "{prefix}", prefix))
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
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 10000"); err != nil {
		return fmt.Errorf("onceward: PRAGMA busy_timeout: %w", err)
	}
	var mode string
	err := s.whileBusy(func() error { return conn.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode) })
	if err != nil {
		return fmt.Errorf("onceward: the store can't be switched to WAL: check that the file and its folder can be written: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("onceward: the store's journal mode is %q and must be wal: use a file on a local disk, not memory", mode)
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = FULL"); err != nil {
		return fmt.Errorf("onceward: PRAGMA synchronous: %w", err)
	}
	return nil
}

// whileBusy tries again, a few times, while another process holds a lock: SQLite does not wait for every kind by itself.
func (s *Store) whileBusy(f func() error) (err error) {
	for try := range 5 {
		if try > 0 {
			time.Sleep(rand.N(10 * time.Millisecond << try))
		}
		if err = f(); err == nil || !s.dialect.Busy(err) {
			return err
		}
	}
	return fmt.Errorf("another process holds a lock on the store: %w", err)
}
