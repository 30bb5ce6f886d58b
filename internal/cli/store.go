package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/ncruces/go-sqlite3/driver" // the driver behind sqlite: URLs

	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/sqlstore"
)

// store is an open store and how to close it.
type store struct {
	janitor.Store
	close func() error
}

const storeHelp = "store URL: sqlite:PATH or memory:"

// openStore opens a store URL. create allows a missing file to be made.
func openStore(ctx context.Context, text string, create bool) (*store, error) {
	scheme, path, err := parseStore(text)
	if err != nil {
		return nil, err
	}
	if scheme == "memory" {
		return &store{memstore.New(nil), func() error { return nil }}, nil
	}
	return openSQLite(ctx, path, create)
}

// parseStore checks a store URL without touching what it names.
func parseStore(text string) (scheme, path string, err error) {
	scheme, path, ok := strings.Cut(text, ":")
	path = strings.TrimPrefix(path, "//")
	switch {
	case !ok:
		err = usage("store %q has no scheme: known are sqlite:PATH and memory:", text)
	case scheme == "memory" && path != "":
		err = usage("store memory: takes nothing behind the colon")
	case scheme == "sqlite" && (path == "" || path == ":memory:"):
		err = usage("store sqlite: needs a file, such as sqlite:onceward.db; for memory use memory:")
	case scheme != "memory" && scheme != "sqlite":
		err = usage("store scheme %q is not known: known are sqlite:PATH and memory:", scheme)
	}
	return scheme, path, err
}

func openSQLite(ctx context.Context, path string, create bool) (*store, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && !create {
		return nil, &exitError{exitNotFound, fmt.Errorf("there is no store at %s", path)}
	}
	if dir := filepath.Dir(path); dir != "." {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("the store's folder %s is not there: make it, or name another path", dir)
		}
	}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate"}).String()
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	s, err := sqlstore.Open(ctx, db, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, err), db.Close())
	}
	return &store{s, func() error { return errors.Join(s.Close(), db.Close()) }}, nil
}
