package oncesql_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncesql"
)

var errCut = errors.New("the connection was cut")

// cutter connects as another handle does, and answers the next COMMIT with an error.
type cutter struct {
	inner sqldriver.Driver
	dsn   string
	next  atomic.Int64 // how many commits are answered so
	lands bool         // they take effect all the same
}

func (c *cutter) Connect(context.Context) (sqldriver.Conn, error) {
	conn, err := c.inner.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &cutConn{conn, c}, nil
}

func (c *cutter) Driver() sqldriver.Driver { return c.inner }

// cutConn passes on what database/sql asks a connection for.
type cutConn struct {
	sqldriver.Conn
	of *cutter
}

func (c *cutConn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	tx, err := c.Conn.(sqldriver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &cutTx{tx, c.of}, nil
}

func (c *cutConn) PrepareContext(ctx context.Context, query string) (sqldriver.Stmt, error) {
	return c.Conn.(sqldriver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *cutConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if on, ok := c.Conn.(sqldriver.ExecerContext); ok {
		return on.ExecContext(ctx, query, args)
	}
	return nil, sqldriver.ErrSkip
}

func (c *cutConn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if on, ok := c.Conn.(sqldriver.QueryerContext); ok {
		return on.QueryContext(ctx, query, args)
	}
	return nil, sqldriver.ErrSkip
}

func (c *cutConn) CheckNamedValue(v *sqldriver.NamedValue) error {
	if on, ok := c.Conn.(sqldriver.NamedValueChecker); ok {
		return on.CheckNamedValue(v)
	}
	return sqldriver.ErrSkip
}

type cutTx struct {
	sqldriver.Tx
	of *cutter
}

func (t *cutTx) Commit() error {
	if t.of.next.Add(-1) < 0 {
		return t.Tx.Commit()
	}
	if t.of.lands {
		return errors.Join(t.Tx.Commit(), errCut)
	}
	return errors.Join(t.Rollback(), errCut)
}

// TestLostReplyToCommit: what became of it is found out by claiming again. It is told as it is, and nothing happens twice.
func TestLostReplyToCommit(t *testing.T) {
	t.Parallel()
	for name, lands := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
				cut := &cutter{inner: d.db.Driver(), dsn: d.dsn, lands: lands}
				cut.next.Store(1)
				db := sql.OpenDB(cut)
				defer db.Close()
				v, err := oncesql.Do(t.Context(), d.op, db, onceward.Call{Key: k("K")}, func(ctx context.Context, tx *sql.Tx) (string, error) {
					return "paid K", d.debit(ctx, tx, "K")
				})
				if lands {
					if v != "paid K" || err != nil || d.debits(t, "K") != 1 || d.status(t, "K") != "SUCCESS" {
						t.Errorf("%q %v, %d debits, %q", v, err, d.debits(t, "K"), d.status(t, "K"))
					}
				} else if !errors.Is(err, errCut) || onceward.CodeOf(err).Retry() != onceward.RetrySameKey || d.debits(t, "K") != 0 || d.status(t, "K") != "" {
					t.Errorf("%q %v, %d debits, %q", v, err, d.debits(t, "K"), d.status(t, "K"))
				}
				if v, _, err := d.pay(t.Context(), "K"); v != "paid K" || err != nil || d.debits(t, "K") != 1 {
					t.Errorf("again: %q %v, %d debits", v, err, d.debits(t, "K"))
				}
			})
		})
	}
}

// TestLostReplyToTheCommitOfANo: the answer no is kept once, by the same way.
func TestLostReplyToTheCommitOfANo(t *testing.T) {
	t.Parallel()
	for name, lands := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
				cut := &cutter{inner: d.db.Driver(), dsn: d.dsn, lands: lands}
				cut.next.Store(1)
				db := sql.OpenDB(cut)
				defer db.Close()
				for range 2 {
					_, err := oncesql.Do(t.Context(), d.op, db, onceward.Call{Key: k("K")}, func(ctx context.Context, tx *sql.Tx) (string, error) {
						return "", errors.Join(onceward.Final(errors.New("no money")), d.debit(ctx, tx, "K"))
					})
					var final *onceward.FinalError
					if !errors.As(err, &final) || d.status(t, "K") != "FAIL FINAL" || d.debits(t, "K") != 0 {
						t.Errorf("%v, %q, %d debits", err, d.status(t, "K"), d.debits(t, "K"))
					}
				}
			})
		})
	}
}
