package dialect_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/onceward/onceward/dialect"
)

type connector struct{ of driver.Driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("not in this test")
}
func (c connector) Driver() driver.Driver { return c.of }

type wrapped struct{}

func (*wrapped) Open(string) (driver.Conn, error) { return nil, errors.New("not in this test") }

func TestOf(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite3", "file:unused.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if d, err := dialect.Of(db); err != nil || d != dialect.SQLite || d.String() != "sqlite" {
		t.Errorf("%v %v", d, err)
	}
	other := sql.OpenDB(connector{&wrapped{}})
	defer other.Close()
	if d, err := dialect.Of(other); err == nil || !strings.Contains(err.Error(), "Options.Dialect") {
		t.Errorf("a driver that nobody knows: %v %v", d, err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	for prefix, fine := range map[string]bool{
		"onceward_": true, "_": true, "A1": true, strings.Repeat("a", 31): true,
		"": false, "1a": false, "a-b": false, "a b": false, `a"`: false, "a;": false, "é": false, "a\n": false, strings.Repeat("a", 32): false,
	} {
		if got, err := dialect.PostgreSQL.Table("", prefix); (err == nil) != fine || fine && got != prefix {
			t.Errorf("%q: %q %v", prefix, got, err)
		}
		if got, err := dialect.MySQL.Table(prefix, "p_"); (err == nil) != (fine || prefix == "") || fine && got != prefix+".p_" {
			t.Errorf("schema %q: %q %v", prefix, got, err)
		}
	}
	if _, err := dialect.SQLite.Table("main", "p_"); err == nil {
		t.Error("SQLite took a schema")
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // full, busy
		"sqlite3: database or disk is full":             {true, false},
		"database or disk is full (13)":                 {true, false},
		"sqlite3: database is locked":                   {false, true},
		"database is locked (5) (SQLITE_BUSY)":          {false, true},
		"sqlite3: attempt to write a readonly database": {false, false},
	} {
		err := errors.New(text)
		if got := [2]bool{dialect.SQLite.Full(err), dialect.SQLite.Busy(err)}; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if dialect.SQLite.Full(nil) || dialect.SQLite.Busy(nil) {
		t.Error("no error is none of them")
	}
}
