// Package sqlstore keeps records in a SQL database. It speaks database/sql and imports no driver.
//
// SQLite: open a file, with a driver of your choice, by a handle that is the store's alone. With ncruces/go-sqlite3:
//
//	db, err := sql.Open("sqlite3", "file:onceward.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
//	store, err := sqlstore.Open(ctx, db, nil)
//
// A missing or empty file gets its tables; an older one is refused with the command that migrates it. Several
// processes may use one file on a local disk. A call is answered only after its COMMIT returned, with synchronous=FULL,
// whatever the handle says, so what was acknowledged survives a power cut as far as the disk keeps its word. A write
// waits for another process's lock for some time (10 s, a few times) and then fails with nothing written. The clock is
// the host's, in milliseconds. The store keeps one connection for writing and a few for reading.
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
	"sync"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

//go:embed sql migrations
var files embed.FS

// Options of a Store. Nil and the zero value are valid.
type Options struct {
	// TablePrefix begins the names of the tables. Empty: "onceward_".
	TablePrefix string
	// Dialect is for wrapped drivers, whose family can't be told. Zero: by the driver.
	Dialect dialect.Dialect
}

// Store is a driver.Store and driver.Sweeper. Safe for concurrent use.
type Store struct {
	db      *sql.DB
	dialect dialect.Dialect
	id      driver.StoreID
	sql     map[string]string
	readers readers
	writer  writer
	group   group
	closing sync.Once
}

// Open prepares a store on db, which stays the caller's to close, after Close. db needs at least two connections: one
// is taken for writing. Errors: ErrSchemaOld, ErrSchemaNew, or that the file can't be written.
func Open(ctx context.Context, db *sql.DB, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	prefix := opts.TablePrefix
	if prefix == "" {
		prefix = "onceward_"
	}
	if err := dialect.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if db.Stats().MaxOpenConnections == 1 {
		return nil, errors.New("onceward: the store needs at least two connections (one is for writing): raise SetMaxOpenConns")
	}
	s := &Store{db: db, dialect: opts.Dialect}
	if s.dialect == 0 {
		var err error
		if s.dialect, err = dialect.Of(db); err != nil {
			return nil, err
		}
	}
	var err error
	if s.sql, err = statements(s.dialect, prefix); err != nil {
		return nil, err
	}
	if err := s.prepareSchema(ctx, prefix); err != nil {
		return nil, err
	}
	if s.id, err = s.storeID(ctx, prefix); err != nil {
		return nil, err
	}
	s.readers = newReaders(s, db.Stats().MaxOpenConnections)
	s.writer.store = s
	s.group.run = s.writer.run
	if err := s.writer.probe(ctx); err != nil { // now, not at the first call
		return nil, errors.Join(fmt.Errorf("onceward: the store can't be written: check the permissions of the file and its folder: %w", err), s.Close())
	}
	return s, nil
}

// Close waits for the calls that are under way and gives the store's connections back. Later calls are refused.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.group.close()
		s.readers.close()
		s.writer.session.close()
	})
	return nil
}

// statements reads the dialect's SQL files and puts the prefix and the common part of reading in.
func statements(d dialect.Dialect, prefix string) (map[string]string, error) {
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
		out[strings.TrimSuffix(f.Name(), ".sql")] = string(text)
	}
	placeholders := strings.NewReplacer("{prefix}", prefix, "{fields}", "\n"+out["fields"])
	for name, text := range out {
		out[name] = placeholders.Replace(text)
	}
	return out, nil
}

func (s *Store) storeID(ctx context.Context, prefix string) (id driver.StoreID, err error) {
	var text string
	//nolint:gosec // the prefix was checked to be an identifier
	err = s.db.QueryRowContext(ctx, "SELECT value FROM "+prefix+"meta WHERE name = 'store_id'").Scan(&text)
	if err != nil {
		return id, fmt.Errorf("onceward: the store has no id, its first migration is not whole: %w", err)
	}
	if n, err := hex.Decode(id[:], []byte(text)); err != nil || n != len(id) {
		return id, errors.New("onceward: the store's id is damaged")
	}
	return id, nil
}
