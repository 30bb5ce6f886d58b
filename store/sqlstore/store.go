// Package sqlstore keeps records in a SQL database. It speaks database/sql and imports no driver.
//
// Give it a handle (*sql.DB) of its own, so that business transactions can't take the connections that claims and heartbeats
// need. Its tables are made by onceward migrate up --store URL, or by hand from onceward migrate print; only an empty SQLite
// file gets them by itself. A version of the tables that does not fit is refused with the command that mends it.
//
// # SQLite
//
// With ncruces/go-sqlite3, for example:
//
//	db, err := sql.Open("sqlite3", "file:onceward.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
//	store, err := sqlstore.Open(ctx, db, nil)
//
// Several processes may use one file on a local disk. A call is answered only after its COMMIT returned, with
// synchronous=FULL, whatever the handle says, so what was acknowledged survives a power cut as far as the disk keeps its
// word. A write waits some seconds for another process's lock and then fails with nothing written. The clock is the host's,
// in milliseconds. The store keeps one connection for writing and a few for reading.
//
// # PostgreSQL
//
// From version 14, by pgx's database/sql driver. Every call is one statement, a transaction of its own, right under any
// isolation level and without anything that a session would have to remember, so a pooler in transaction mode is fine; behind
// one that knows no prepared statements add default_query_exec_mode=exec to the URL. The clock is the server's. What was
// acknowledged is kept as far as the server keeps it: not with synchronous_commit=off, and not across a failover to an
// asynchronous standby.
//
// # MySQL and MariaDB
//
// By go-sql-driver/mysql; tested on MariaDB, and written in what MySQL 8 has too. A claim of a new key is one statement, a
// duplicate two. The store's sessions have their own isolation level, sql_mode and lock wait; the DSN's clientFoundRows,
// parseTime and loc do not matter. A handle whose sessions have autocommit off is refused. The clock is the server's. What was
// acknowledged is kept with innodb_flush_log_at_trx_commit=1.
package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

//go:embed sql migrations
var files embed.FS

// Options of a Store. Nil and the zero value are valid.
type Options struct {
	// TablePrefix begins the names of the tables. Empty: "onceward_".
	TablePrefix string
	// Schema is where the tables are: a schema of PostgreSQL, a database of MySQL. Empty: where the handle is. SQLite has none.
	Schema string
	// Dialect is for wrapped drivers, whose family can't be told. Zero: by the driver.
	Dialect dialect.Dialect
	// Connections is how many of the handle's connections the store keeps for its calls on PostgreSQL and MySQL; one more is
	// for heartbeats. At most two less than the handle may have. Zero: 16.
	Connections int
}

// Store is a driver.Store, driver.Sweeper and driver.TxStore. Safe for concurrent use.
type Store struct {
	db       *sql.DB
	dialect  dialect.Dialect
	tables   string // how the names of the tables begin
	id       driver.StoreID
	sql      map[string]string
	runner   runner
	setup    func(context.Context, *sql.Conn) error // of a new session
	reading  string                                 // the statement that reads a record
	mariadb  bool
	floor    *floor
	bound    bool   // to a caller's transaction
	peeks    bool   // a claim looks before it writes
	lockWait string // how long a claim waits: milliseconds, empty for as long as the session would
}

// Open prepares a store on db, which stays the caller's to close, after Close. db needs at least two connections.
// Errors: ErrSchemaMissing, ErrSchemaOld, ErrSchemaNew, or that the database can't be written.
func Open(ctx context.Context, db *sql.DB, opts *Options) (*Store, error) {
	s, err := describe(db, opts)
	if err != nil {
		return nil, err
	}
	if db.Stats().MaxOpenConnections == 1 {
		return nil, errors.New("onceward: the store needs at least two connections: raise SetMaxOpenConns")
	}
	if err := s.prepareSchema(ctx); err != nil {
		return nil, err
	}
	if s.id, err = s.storeID(ctx); err != nil {
		return nil, err
	}
	if s.dialect == dialect.SQLite {
		e := newEmbedded(s)
		s.runner, s.peeks = e, true
		if err := e.writer.probe(ctx); err != nil { // now, not at the first call
			return nil, errors.Join(fmt.Errorf("onceward: the store can't be written: check the permissions of the file and its folder: %w", err), s.Close())
		}
		return s, nil
	}
	connections := 16
	if opts != nil && opts.Connections > 0 {
		connections = opts.Connections
	}
	p := newServer(s, connections)
	s.runner, s.setup = p, s.ownSession
	if err := p.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// describe tells what is to be opened, without asking the database.
func describe(db *sql.DB, opts *Options) (s *Store, err error) {
	if opts == nil {
		opts = &Options{}
	}
	s = &Store{db: db, dialect: opts.Dialect, reading: "read"}
	s.floor = &floor{}
	if s.dialect == 0 {
		if s.dialect, err = dialect.Of(db); err != nil {
			return nil, err
		}
	}
	prefix := opts.TablePrefix
	if prefix == "" {
		prefix = "onceward_"
	}
	if s.tables, err = s.dialect.Table(opts.Schema, prefix); err != nil {
		return nil, err
	}
	s.sql, err = statements(s.dialect, s.tables)
	return s, err
}

// Close waits for the calls that are under way and gives the store's connections back. Later calls are refused.
func (s *Store) Close() error {
	s.runner.close()
	return nil
}

// statements reads the dialect's SQL files and puts the names of the tables and the common part of reading in.
func statements(d dialect.Dialect, tables string) (map[string]string, error) {
	dir := path.Join("sql", d.String())
	list, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, fmt.Errorf("onceward: no statements for dialect %v", d)
	}
	out := make(map[string]string, len(list))
	for _, f := range list {
		text, err := files.ReadFile(path.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		out[strings.TrimSuffix(f.Name(), ".sql")] = code(string(text))
	}
	placeholders := strings.NewReplacer("{prefix}", tables, "{fields}", out["fields"], "{some}", "?"+strings.Repeat(", ?", some-1))
	for name, text := range out {
		out[name] = placeholders.Replace(text)
	}
	return out, nil
}

// code drops comment lines: they are for readers, and servers would get them with every call.
func code(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

func (s *Store) storeID(ctx context.Context) (id driver.StoreID, err error) {
	var text string
	//nolint:gosec // the names of the tables were checked to be identifiers
	err = s.db.QueryRowContext(ctx, "SELECT value FROM "+s.tables+"meta WHERE name = 'store_id'").Scan(&text)
	if err != nil {
		return id, fmt.Errorf("onceward: the store has no id, its first migration is not whole: %w", err)
	}
	if n, err := hex.Decode(id[:], []byte(text)); err != nil || n != len(id) {
		return id, errors.New("onceward: the store's id is damaged")
	}
	return id, nil
}
