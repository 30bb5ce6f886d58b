package teststore

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // the driver that the command uses

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/sqlstore"
	"github.com/onceward/onceward/store/storetest"
)

// Pragmas of a SQLite handle, as the package documentation of sqlstore has them.
const Pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate"

// File is a SQLite store with the database behind it.
type File struct {
	*sqlstore.Store
	DB   *sql.DB
	Path string
}

// OpenFile opens a store, which ends with the test.
func OpenFile(t storetest.T, path string) *File {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+Pragmas)
	if err != nil {
		t.Fatalf("%v", err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	s, err := sqlstore.Open(context.Background(), db, nil)
	if err != nil {
		_ = db.Close()
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = s.Close(); _ = db.Close() })
	return &File{s, db, path}
}

// SQLite is the harness of package sqlstore on SQLite, each store in a folder of its own.
func SQLite(t *testing.T) storetest.Harness {
	t.Helper()
	root := t.TempDir()
	return storetest.Harness{
		Open: func(tt storetest.T) driver.Store {
			tt.Helper()
			dir, err := os.MkdirTemp(root, "") //nolint:usetesting // a folder for each store of one test
			if err != nil {
				tt.Fatalf("%v", err)
			}
			return OpenFile(tt, filepath.Join(dir, "o.db"))
		},
		Second: func(tt storetest.T, first driver.Store) driver.Store {
			tt.Helper()
			return OpenFile(tt, first.(*File).Path)
		},
		Edit: func(tt storetest.T, s driver.Store, id driver.ID, change func(*driver.Record)) {
			tt.Helper()
			snap, err := s.Get(tt.Context(), id)
			if err != nil {
				tt.Fatalf("edit: %v", err)
			}
			r := &snap.Record
			change(r)
			at := func(t time.Time) any {
				if t.IsZero() {
					return nil
				}
				return t.UTC().Format("2006-01-02 15:04:05.000000")
			}
			_, err = s.(*File).DB.ExecContext(tt.Context(), `UPDATE onceward_records SET lease_until = ?, deadline_at = ?,
				repeatable_until = ?, created_at = ?, claimed_at = ?, updated_at = ?, completed_at = ?, expires_at = ? WHERE id = ?`,
				at(r.LeaseUntil), at(r.DeadlineAt), at(r.RepeatableUntil), at(r.CreatedAt), at(r.ClaimedAt), at(r.UpdatedAt), at(r.CompletedAt), at(r.ExpiresAt), id[:])
			if err != nil {
				tt.Fatalf("edit: %v", err)
			}
		},
	}
}
