package oncesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncesql"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a guard over a store in a database, with a table of the business beside the records.
type desk struct {
	*onceward.Guard
	op      *onceward.Op
	store   driver.Store
	db      *sql.DB // the business's handle
	admin   *sql.DB
	dsn     string
	dialect dialect.Dialect
	table   string
	records string
	place   any // *teststore.On or *teststore.File
}

// each runs a test on every SQL database.
func each(t *testing.T, o onceward.Operation, run func(t *testing.T, d *desk)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) *desk{
		"sqlite":   onFile,
		"postgres": func(t *testing.T) *desk { return onServer(t, teststore.Postgres(t, "")) },
		"mysql":    func(t *testing.T) *desk { return onServer(t, teststore.MySQL(t, "interpolateParams=true")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.define(t, o)
			run(t, d)
		})
	}
}

func onFile(t *testing.T) *desk {
	t.Helper()
	f := teststore.OpenFile(t, filepath.Join(t.TempDir(), "o.db"))
	db, err := sql.Open("sqlite3", "file:"+f.Path+teststore.Pragmas)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	d := &desk{store: f.Store, db: db, dsn: "file:" + f.Path + teststore.Pragmas, admin: f.DB, dialect: dialect.SQLite, table: "debits", records: "onceward_records", place: f}
	d.create(t)
	return d
}

func onServer(t *testing.T, s *teststore.Server) *desk {
	t.Helper()
	on := s.Store(t)
	d := &desk{store: on.Store, db: s.Open(t, 20), dsn: s.DSN, admin: s.Admin, dialect: s.Dialect, table: s.Schema + ".debits",
		records: s.Schema + "." + on.Prefix + "records", place: on}
	d.create(t)
	return d
}

func (d *desk) create(t *testing.T) {
	t.Helper()
	d.exec(t, "CREATE TABLE "+d.table+" (k VARCHAR(64) NOT NULL, n INT NOT NULL)")
}

// define makes the guard and its operation.
func (d *desk) define(t *testing.T, o onceward.Operation) {
	t.Helper()
	d.Guard = d.guard(t)
	o.Name, o.Tx = "pay", true
	var err error
	if d.op, err = d.Define(o); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) guard(t *testing.T) *onceward.Guard {
	t.Helper()
	g, err := onceward.New(d.store, &onceward.Options{SingleTenant: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// other is the same operation in another process: another guard over a store of its own.
func (d *desk) other(t *testing.T) *desk {
	t.Helper()
	o := *d
	switch p := d.place.(type) {
	case *teststore.On:
		o.store = p.Server.Another(t, p.Prefix).Store
	case *teststore.File:
		o.store = teststore.OpenFile(t, p.Path).Store
	}
	o.define(t, d.op.Policy())
	return &o
}

func (d *desk) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := d.admin.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// debit is the work: a row for the key.
func (d *desk) debit(ctx context.Context, on oncesql.Executor, k string) error {
	_, err := on.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (k, n) VALUES ('%s', 1)", d.table, k))
	return err
}

// debits counts the rows of a key.
func (d *desk) debits(t *testing.T, k string) (n int) {
	t.Helper()
	if err := d.admin.QueryRowContext(t.Context(), fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE k = '%s'", d.table, k)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// status returns the record's status and failure, empty when there is none.
func (d *desk) status(t *testing.T, k string) string {
	t.Helper()
	var status, failure string
	err := d.admin.QueryRowContext(t.Context(), fmt.Sprintf("SELECT status, failure FROM %s WHERE idempotency_key = '%s'", d.records, k)).Scan(&status, &failure)
	if errors.Is(err, sql.ErrNoRows) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(status + " " + failure)
}

func k(text string) key.Key {
	parsed, err := key.Parse(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// pay debits once for the key.
func (d *desk) pay(ctx context.Context, text string) (string, onceward.Info, error) {
	return d.do(ctx, text, func(ctx context.Context, tx *sql.Tx) (string, error) { return "paid " + text, d.debit(ctx, tx, text) })
}

func (d *desk) do(ctx context.Context, text string, work func(context.Context, *sql.Tx) (string, error)) (string, onceward.Info, error) {
	var info onceward.Info
	v, err := oncesql.Do(ctx, d.op, d.db, onceward.Call{Key: k(text), Info: &info}, work)
	return v, info, err
}
