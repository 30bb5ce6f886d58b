//go:build unix

package crash

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/sqlstore"
)

// points are the moments before and after each store call and effect of a process, in their order.
type points struct {
	at  int          // act is called at this one, counted from 1; zero: at none
	act func() error // an error is what the call returns in place of its answer
	say func(name string)

	mu    sync.Mutex
	names []string

	quiet sync.Mutex // held while a heartbeat is in the store
}

func (p *points) pass(name string) error {
	p.mu.Lock()
	p.names = append(p.names, name)
	n := len(p.names)
	if p.say != nil {
		p.say(name)
	}
	p.mu.Unlock()
	if n != p.at {
		return nil
	}
	return p.act()
}

// errLost is what a call returns that did not arrive, or whose answer did not.
var errLost = fmt.Errorf("no answer: %w", io.ErrUnexpectedEOF)

// through makes a call between its two points.
func through[R any](p *points, name string, do func() (R, error)) (R, error) {
	var zero R
	if err := p.pass("before " + name); err != nil {
		return zero, err
	}
	reply, err := do()
	if lost := p.pass("after " + name); lost != nil {
		return zero, lost
	}
	return reply, err
}

func (p *points) call(name string, do func() error) error {
	_, err := through(p, name, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// stepStore is what a run needs of a store.
type stepStore interface {
	driver.Store
	driver.StepStore
}

// pointed is a store with points around its calls.
type pointed struct {
	stepStore
	points *points
}

func (s *pointed) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	return through(s.points, "claim", func() (driver.Claimed, error) { return s.stepStore.Claim(ctx, c) })
}

// Progress is named by the step that it tells of, which is the last one in a run whose steps come one by one.
func (s *pointed) Progress(ctx context.Context, p driver.Progress) error {
	last := p.Steps[len(p.Steps)-1]
	return s.points.call("progress "+last.Name+" "+strings.ToLower(last.State.String()), func() error { return s.stepStore.Progress(ctx, p) })
}

func (s *pointed) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	return through(s.points, "finish", func() (driver.Finished, error) { return s.stepStore.Finish(ctx, f) })
}

func (s *pointed) Settle(ctx context.Context, st driver.Settlement) (driver.Settled, error) {
	return through(s.points, "settlement", func() (driver.Settled, error) { return s.stepStore.Settle(ctx, st) })
}

func (s *pointed) Get(ctx context.Context, id driver.ID) (driver.Snapshot, error) {
	return through(s.points, "get", func() (driver.Snapshot, error) { return s.stepStore.Get(ctx, id) })
}

// Renew has no points: heartbeats come by the clock, and a run is over before its first.
func (s *pointed) Renew(ctx context.Context, r driver.Renewal) error {
	s.points.quiet.Lock()
	defer s.points.quiet.Unlock()
	return s.stepStore.Renew(ctx, r)
}

// pointedTx is a pointed store with transactions.
type pointedTx struct {
	pointed
	tx driver.TxStore
}

func (s *pointedTx) Bind(tx driver.Tx, lockWait time.Duration) driver.Store {
	return &pointed{s.tx.Bind(tx, lockWait).(*sqlstore.Store), s.points}
}

func (s *pointedTx) Check(ctx context.Context, tx driver.Tx) error {
	return s.points.call("check", func() error { return s.tx.Check(ctx, tx) })
}

// connector connects to the database of the business, with points around BEGIN and COMMIT.
type connector struct {
	dsn    string
	inner  sqldriver.Driver
	points *points

	mu     sync.Mutex
	begins int
}

// open returns the business's own handle of the database behind db.
func (p *points) open(db *sql.DB, dsn string) *sql.DB {
	return sql.OpenDB(&connector{dsn: dsn, inner: db.Driver(), points: p})
}

func (c *connector) Driver() sqldriver.Driver { return c.inner }

func (c *connector) Connect(context.Context) (sqldriver.Conn, error) {
	conn, err := c.inner.Open(c.dsn)
	return &pointedConn{conn, c}, err
}

// pointedConn passes on what database/sql asks a connection for.
type pointedConn struct {
	sqldriver.Conn
	of *connector
}

func (c *pointedConn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	name := "check" // is what the first transaction is for
	c.of.mu.Lock()
	if c.of.begins++; c.of.begins > 1 {
		name = "settle"
	}
	c.of.mu.Unlock()
	var begun sqldriver.Tx
	tx, err := through(c.of.points, "begin "+name, func() (_ sqldriver.Tx, err error) {
		begun, err = c.Conn.(sqldriver.ConnBeginTx).BeginTx(ctx, opts)
		return begun, err
	})
	if err != nil {
		if begun != nil {
			err = errors.Join(err, begun.Rollback()) // as a broken connection does
		}
		return nil, err
	}
	return &pointedEnd{tx, c.of.points}, nil
}

func (c *pointedConn) PrepareContext(ctx context.Context, query string) (sqldriver.Stmt, error) {
	return c.Conn.(sqldriver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *pointedConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if on, ok := c.Conn.(sqldriver.ExecerContext); ok {
		return on.ExecContext(ctx, query, args)
	}
	return nil, sqldriver.ErrSkip
}

func (c *pointedConn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if on, ok := c.Conn.(sqldriver.QueryerContext); ok {
		return on.QueryContext(ctx, query, args)
	}
	return nil, sqldriver.ErrSkip
}

func (c *pointedConn) CheckNamedValue(v *sqldriver.NamedValue) error {
	if on, ok := c.Conn.(sqldriver.NamedValueChecker); ok {
		return on.CheckNamedValue(v)
	}
	return sqldriver.ErrSkip
}

type pointedEnd struct {
	sqldriver.Tx
	points *points
}

func (t *pointedEnd) Commit() error {
	err := t.points.call("commit settle", t.Tx.Commit)
	if err != nil {
		_ = t.Rollback() // what was not committed goes with its connection
	}
	return err
}
