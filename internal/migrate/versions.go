package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pressly/goose/v3/database"

	"github.com/onceward/onceward/dialect"
)

// versions keeps the version of the tables where the library reads it, in the row 'schema' of the meta table: there is one
// truth, also for tables that were made by hand or by the library itself.
type versions struct {
	dialect dialect.Dialect
	meta    string
}

var _ database.StoreExtender = (*versions)(nil)

// Tablename implements database.Store.
func (v *versions) Tablename() string { return v.meta }

// TableExists implements database.StoreExtender. The first migration makes the table, so there is nothing to make before it.
func (v *versions) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// CreateVersionTable implements database.Store.
func (v *versions) CreateVersionTable(context.Context, database.DBTxConn) error { return nil }

// Insert implements database.Store.
func (v *versions) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	if req.Version == 0 {
		return nil
	}
	return v.set(ctx, db, req.Version)
}

// Delete implements database.Store.
func (v *versions) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	if version <= 1 {
		return nil // the table is gone
	}
	return v.set(ctx, db, version-1)
}

func (v *versions) set(ctx context.Context, db database.DBTxConn, version int64) error {
	//nolint:gosec // the name of the table was checked to be made of identifiers
	res, err := db.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET value = '%d' WHERE name = 'schema'", v.meta, version))
	if err != nil {
		return err
	}
	_, err = res.RowsAffected()
	return err
}

// GetMigration implements database.Store.
func (v *versions) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	latest, err := v.GetLatestVersion(ctx, db)
	if err != nil {
		return nil, err
	}
	if version > latest {
		return nil, database.ErrVersionNotFound
	}
	return &database.GetMigrationResult{Timestamp: time.Time{}, IsApplied: true}, nil
}

// GetLatestVersion implements database.Store.
func (v *versions) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	there, err := v.there(ctx, db)
	if err != nil || !there {
		return 0, err
	}
	var version int64
	//nolint:gosec // the name of the table was checked to be made of identifiers
	err = db.QueryRowContext(ctx, "SELECT value FROM "+v.meta+" WHERE name = 'schema'").Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil // a first migration that broke off, on a database whose DDL commits by itself
	}
	return version, err
}

// ListMigrations implements database.Store.
func (v *versions) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	latest, err := v.GetLatestVersion(ctx, db)
	if err != nil {
		return nil, err
	}
	var all []*database.ListMigrationsResult
	for ; latest >= 0; latest-- {
		all = append(all, &database.ListMigrationsResult{Version: latest, IsApplied: true})
	}
	return all, nil
}

// there asks the catalogue: an error for a missing table would end a PostgreSQL transaction.
func (v *versions) there(ctx context.Context, db database.DBTxConn) (there bool, err error) {
	schema, name, qualified := strings.Cut(v.meta, ".")
	if !qualified {
		schema, name = "", v.meta
	}
	switch v.dialect {
	case dialect.PostgreSQL:
		err = db.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", v.meta).Scan(&there)
	case dialect.MySQL:
		err = db.QueryRowContext(ctx, "SELECT COUNT(*) > 0 FROM information_schema.tables WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?", schema, name).Scan(&there)
	default:
		err = db.QueryRowContext(ctx, "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?", name).Scan(&there)
	}
	return there, err
}
