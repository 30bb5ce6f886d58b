package oncesql_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncesql"
	"github.com/onceward/onceward/store/sqlstore"
)

// victim is what the child process works on.
type victim struct {
	Driver, DSN, Schema, Prefix, Table string
	At                                 int // dies at this point, counted from 1
}

// TestKilledBetweenBeginAndCommit kills a process (kill -9) before and after every single call that it makes to the database
// between BEGIN and COMMIT. Row and record are both there afterwards, or neither, and the next call makes it one.
func TestKilledBetweenBeginAndCommit(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		v := victim{Driver: "sqlite3", DSN: d.dsn, Table: d.table}
		if on, ok := d.place.(*teststore.On); ok {
			v.Driver, v.Schema, v.Prefix = on.Server.Driver, on.Server.Schema, on.Prefix
		}
		both, neither := 0, 0
		for v.At = 1; ; v.At++ {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestVictim$") //nolint:gosec // this very binary
			cmd.Env = append(os.Environ(), "ONCESQL_VICTIM="+string(text))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err == nil {
				break // it got through: there was no such point
			}
			if !errors.As(err, &exit) || exit.ExitCode() != -1 {
				t.Fatalf("point %d: %v\n%s", v.At, err, out)
			}
			k := fmt.Sprintf("K%d", v.At)
			debits, status := d.debits(t, k), d.status(t, k)
			switch {
			case debits == 1 && status == "SUCCESS":
				both++
			case debits == 0 && status == "":
				neither++
			default:
				t.Errorf("point %d: %d debits, the record says %q", v.At, debits, status)
			}
			if got, _, err := d.pay(t.Context(), k); got != "paid "+k || err != nil || d.debits(t, k) != 1 {
				t.Errorf("point %d: then %q %v, %d debits", v.At, got, err, d.debits(t, k))
			}
		}
		t.Logf("%d points: both at %d, neither at %d", v.At-1, both, neither)
		if points := v.At - 1; points < 8 || both == 0 || neither < 6 {
			t.Errorf("%d points: %d times both, %d times neither", points, both, neither)
		}
	})
}

// TestVictim is the child's main: it pays once, and dies at its point.
func TestVictim(t *testing.T) {
	text := os.Getenv("ONCESQL_VICTIM")
	if text == "" {
		t.Skip("only as a child of TestKilledBetweenBeginAndCommit")
	}
	var v victim
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	plain, err := sql.Open(v.Driver, v.DSN)
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), plain, &sqlstore.Options{Schema: v.Schema, TablePrefix: v.Prefix, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	g, err := onceward.New(store, &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "pay", Tx: true})
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(&mortal{inner: plain.Driver(), dsn: v.DSN, at: int64(v.At)})
	d := &desk{table: v.Table}
	name := "K" + strconv.Itoa(v.At)
	_, err = oncesql.Do(t.Context(), op, db, onceward.Call{Key: k(name)}, func(ctx context.Context, tx *sql.Tx) (string, error) {
		return "paid " + name, d.debit(ctx, tx, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	os.Exit(0) // it got through
}

// mortal connects as another handle does, and kills the process before or after a call.
type mortal struct {
	inner sqldriver.Driver
	dsn   string
	at    int64
	seen  atomic.Int64
}

// point is a moment at which the process may die.
func (m *mortal) point() {
	if m.seen.Add(1) == m.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (m *mortal) Connect(context.Context) (sqldriver.Conn, error) {
	conn, err := m.inner.Open(m.dsn)
	if err != nil {
		return nil, err
	}
	return &mortalConn{cutConn{conn, nil}, m}, nil
}

func (m *mortal) Driver() sqldriver.Driver { return m.inner }

type mortalConn struct {
	cutConn
	m *mortal
}

func (c *mortalConn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	c.m.point()
	tx, err := c.Conn.(sqldriver.ConnBeginTx).BeginTx(ctx, opts)
	c.m.point()
	return &mortalTx{tx, c.m}, err
}

func (c *mortalConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	c.m.point()
	defer c.m.point()
	return c.cutConn.ExecContext(ctx, query, args)
}

func (c *mortalConn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	c.m.point()
	defer c.m.point()
	return c.cutConn.QueryContext(ctx, query, args)
}

type mortalTx struct {
	sqldriver.Tx
	m *mortal
}

func (t *mortalTx) Commit() error {
	t.m.point()
	defer t.m.point()
	return t.Tx.Commit()
}
