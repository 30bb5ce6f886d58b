package storeurl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/ncruces/go-sqlite3/driver" // the driver behind sqlite: URLs

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/sqlstore"
)

// Options of Open. The zero value is valid.
type Options struct {
	Create      bool   // a missing SQLite file is made
	Schema      string // of PostgreSQL, or database of MySQL; empty: the URL's own
	TablePrefix string // empty: "onceward_"
	Connections int    // for calls, on a server. Zero: 16
}

// Store is an open store.
type Store struct {
	janitor.Store
	DB    *sql.DB // nil for memory
	close []func() error
}

// Close closes the store and its handle.
func (s *Store) Close() error {
	var errs []error
	for _, c := range s.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// Open opens the store. Errors: ErrUsage, ErrNotFound, and sqlstore's about the tables.
func (u *URL) Open(ctx context.Context, o Options) (*Store, error) {
	if u.Scheme == "memory" {
		return &Store{Store: memstore.New(nil)}, nil
	}
	connections := o.Connections
	if connections == 0 {
		connections = 16
	}
	var db *sql.DB
	var err error
	if u.On == dialect.SQLite {
		db, err = u.openFile(o.Create)
	} else {
		db, err = u.Handle(connections + 3)
	}
	if err != nil {
		return nil, err
	}
	s, err := sqlstore.Open(ctx, db, &sqlstore.Options{Schema: o.Schema, TablePrefix: o.TablePrefix, Connections: o.Connections})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", u, err), db.Close())
	}
	if u.On == dialect.SQLite {
		if info, err := os.Stat(u.Path); err == nil {
			_ = os.Chmod(u.Path+"-shm", info.Mode().Perm()) // an index without content, which modeof does not reach; another's stays as it is
		}
	}
	return &Store{Store: s, DB: db, close: []func() error{s.Close, db.Close}}, nil
}

func (u *URL) openFile(create bool) (*sql.DB, error) {
	if dir := filepath.Dir(u.Path); dir != "." {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("the store's folder %s is not there: make it, or name another path", dir)
		}
	}
	if create {
		// Keys and answers are for the owner alone; modeof below gives SQLite's log the mode of this file.
		if f, err := os.OpenFile(u.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil { //nolint:gosec // the person names the file
			if err := f.Close(); err != nil {
				return nil, err
			}
		}
	}
	if err := checkFile(u.Path); err != nil {
		return nil, err
	}
	escaped := (&url.URL{Path: u.Path}).EscapedPath()
	dsn := "file:" + escaped + "?modeof=" + strings.ReplaceAll(url.QueryEscape(u.Path), "+", "%20") +
		"&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate"
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", u.Path, err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return db, nil
}

// checkFile looks at what is there before SQLite does, whose words are for programmers. An empty file is a new store.
func checkFile(path string) error {
	f, err := os.Open(path) //nolint:gosec // the person names the file
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &kindError{ErrNotFound, fmt.Errorf("there is no store at %s", path)}
	case err != nil:
		return fmt.Errorf("store: %w", err)
	}
	defer func() { _ = f.Close() }()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("store: %w", err)
	case string(head[:n]) != magic:
		return fmt.Errorf("%s is not a SQLite database: name another file", path)
	}
	return nil
}

// Database returns a handle on a SQL store without opening the store: its tables may be missing or of another version.
// create allows a missing SQLite file to be made.
func (u *URL) Database(create bool) (*sql.DB, error) {
	if u.On == dialect.SQLite {
		return u.openFile(create)
	}
	return u.Handle(4)
}
