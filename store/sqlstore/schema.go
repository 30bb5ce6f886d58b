package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/onceward/onceward/dialect"
)

// SchemaVersion is the version of the tables that this package works on.
const SchemaVersion = 2

// Errors of Open about the tables.
var (
	ErrSchemaMissing = errors.New("onceward: the store has no tables yet: run onceward migrate up --store URL, or apply what onceward migrate print shows")
	ErrSchemaOld     = errors.New("onceward: the store's tables are older than this program: run onceward migrate up --store URL")
	ErrSchemaNew     = errors.New("onceward: the store's tables are newer than this program: run the program that migrated them, or a newer one")
)

// Migrations returns the migrations of a dialect by file name, in goose's format, with the names of the tables in.
func Migrations(d dialect.Dialect, schema, prefix string) (map[string]string, error) {
	tables, err := d.Table(schema, prefix)
	if err != nil {
		return nil, err
	}
	dir := path.Join("migrations", d.String())
	list, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, fmt.Errorf("onceward: no migrations for dialect %v", d)
	}
	out := make(map[string]string, len(list))
	for _, f := range list {
		text, err := files.ReadFile(path.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		out[f.Name()] = strings.ReplaceAll(string(text), "{prefix}", tables)
	}
	return out, nil
}

// prepareSchema makes the tables in an empty SQLite file, and otherwise checks their version and that they can be written.
func (s *Store) prepareSchema(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("onceward: the store can't be opened: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if s.dialect == dialect.SQLite {
		err = s.durable(ctx, conn)
	} else {
		err = s.checkServer(ctx, conn)
	}
	if err != nil {
		return err
	}
	version, found, err := s.schemaVersion(ctx, conn)
	if err == nil && !found && s.dialect == dialect.SQLite {
		if err = s.create(ctx, conn); err == nil {
			version, found, err = s.schemaVersion(ctx, conn)
		}
	}
	switch {
	case err != nil:
		return err
	case !found:
		return ErrSchemaMissing
	case version < SchemaVersion:
		return fmt.Errorf("%w (they have version %d, it needs %d)", ErrSchemaOld, version, SchemaVersion)
	case version > SchemaVersion:
		return fmt.Errorf("%w (they have version %d, it knows %d)", ErrSchemaNew, version, SchemaVersion)
	}
	return nil
}

// schemaVersion returns the version of the tables; found is false when there are none.
func (s *Store) schemaVersion(ctx context.Context, conn *sql.Conn) (version int, found bool, err error) {
	var text string
	//nolint:gosec // the names of the tables were checked to be identifiers
	err = conn.QueryRowContext(ctx, "SELECT value FROM "+s.tables+"meta WHERE name = 'schema'").Scan(&text)
	switch {
	case s.dialect.NoTable(err):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("onceward: the version of the store's tables can't be read: %w", err)
	}
	if version, err = strconv.Atoi(text); err != nil {
		return 0, true, fmt.Errorf("onceward: the version of the store's tables is %q, not a number", text)
	}
	return version, true, nil
}

// checkServer refuses a server that is no place for the truth.
func (s *Store) checkServer(ctx context.Context, conn *sql.Conn) error {
	var auto, readOnly bool
	if err := conn.QueryRowContext(ctx, s.sql["check"]).Scan(&auto, &readOnly, &s.mariadb); err != nil {
		return fmt.Errorf("onceward: the store's server can't be asked: %w", err)
	}
	switch {
	case !auto:
		return errors.New("onceward: sessions of this handle have autocommit off, so claims would never be committed: take autocommit=0 out of the DSN or of init_connect")
	case readOnly:
		return errors.New("onceward: the server is read-only, a replica perhaps: give the URL of the primary")
	}
	return nil
}

// ownSession makes a new session of the store's own right, whatever the server's and the handle's settings are. Behind a
// pooler that gives a session to many, PostgreSQL's statements need none of it.
func (s *Store) ownSession(ctx context.Context, conn *sql.Conn) error {
	for _, statement := range strings.Split(s.sql["session"], ";") {
		if statement = strings.TrimSpace(statement); statement == "" {
			continue
		}
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("onceward: the store's session can't be set up: %w", err)
		}
	}
	return nil
}
