package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
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
	if err := durable(ctx, conn); err != nil {
		return err
	}
	version, err := schemaVersion(ctx, conn, prefix)
	if err == nil && version == 0 {
		if err = s.create(ctx, conn, prefix); err == nil {
			version, err = schemaVersion(ctx, conn, prefix)
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

// schemaVersion returns 0 when there are no tables.
func schemaVersion(ctx context.Context, conn *sql.Conn, prefix string) (int, error) {
	var n int
	err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", prefix+"meta").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("onceward: the store can't be read: is it a SQLite file? %w", err)
	}
	if n == 0 {
		return 0, nil
	}
	var text string
	//nolint:gosec // the prefix was checked to be an identifier
	if err := conn.QueryRowContext(ctx, "SELECT value FROM "+prefix+"meta WHERE name = 'schema'").Scan(&text); err != nil {
		return 0, fmt.Errorf("onceward: the store's version can't be read: %w", err)
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("onceward: the store's version is %q, not a number", text)
	}
	return version, nil
}

// create runs the first migration under the write lock; another process that was faster is fine.
func (s *Store) create(ctx context.Context, conn *sql.Conn, prefix string) error {
	text, err := files.ReadFile(path.Join("migrations", s.dialect.String(), "00001_records.sql"))
	if err != nil {
		return err
	}
	_, up, _ := strings.Cut(string(text), "-- +goose Up")
	up, _, _ = strings.Cut(up, "-- +goose Down")
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("onceward: the store can't be written: check the file's and its folder's permissions: %w", err)
	}
	version, err := schemaVersion(ctx, conn, prefix)
	if err == nil && version == 0 {
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

// durable makes a connection keep what it acknowledges: WAL with synchronous=FULL.
func durable(ctx context.Context, conn *sql.Conn) error {
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode); err != nil {
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
