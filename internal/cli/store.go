package cli

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
	case scheme == "sqlite" && strings.ContainsAny(path, "?#"):
		err = usage("store %q: sqlite: takes a path and no options; how the file is opened is settled", text)
	case scheme == "sqlite" && (path == "" || path == ":memory:"):
		err = usage("store sqlite: needs a file, such as sqlite:onceward.db; for memory use memory:")
	case scheme != "memory" && scheme != "sqlite":
		err = usage("store scheme %q is not known: known are sqlite:PATH and memory:", scheme)
	}
	return scheme, path, err
}

func openSQLite(ctx context.Context, path string, create bool) (*store, error) {
	if dir := filepath.Dir(path); dir != "." {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("the store's folder %s is not there: make it, or name another path", dir)
		}
	}
	if create {
		// Keys and answers are for the owner alone; modeof below gives SQLite's log the mode of this file.
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil { //nolint:gosec // the person names the file
			err = f.Close()
			if err != nil {
				return nil, err
			}
		}
	}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	escaped := (&url.URL{Path: path}).EscapedPath()
	dsn := "file:" + escaped + "?modeof=" + strings.ReplaceAll(url.QueryEscape(path), "+", "%20") +
		"&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate"
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
	if info, err := os.Stat(path); err == nil {
		_ = os.Chmod(path+"-shm", info.Mode().Perm()) // an index without content, which modeof does not reach; another's stays as it is
	}
	return &store{s, func() error { return errors.Join(s.Close(), db.Close()) }}, nil
}

// checkFile looks at what is there before SQLite does, whose words are for programmers. An empty file is a new store.
func checkFile(path string) error {
	f, err := os.Open(path) //nolint:gosec // the person names the file
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &exitError{exitNotFound, fmt.Errorf("there is no store at %s", path)}
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
