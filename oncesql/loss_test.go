package oncesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncesql"
)

// TestTransactionThatIsGone: when the claim was rolled back under the work (a deadlock that it hides, a ROLLBACK of its own),
// no success is recorded beside effects that are not there; and what was written afterwards may be there, so that it is not run
// again either, whatever Reruns says.
func TestTransactionThatIsGone(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{Reruns: 3}, func(t *testing.T, d *desk) {
		v, _, err := d.do(t.Context(), "K", func(ctx context.Context, tx *sql.Tx) (string, error) {
			if err := d.debit(ctx, tx, "K"); err != nil {
				return "", err
			}
			if _, err := tx.ExecContext(ctx, "ROLLBACK"); err != nil {
				return "", err
			}
			return "paid K", d.debit(ctx, tx, "after") // commits by itself
		})
		if !errors.Is(err, onceward.ErrUnknown) || d.debits(t, "K") != 0 || d.debits(t, "after") != 1 || d.status(t, "K") != "FAIL UNKNOWN" {
			t.Errorf("%q %v, %d and %d debits, %q", v, err, d.debits(t, "K"), d.debits(t, "after"), d.status(t, "K"))
		}
		if v, _, err := d.pay(t.Context(), "K"); !errors.Is(err, onceward.ErrUnknown) || d.debits(t, "K") != 0 {
			t.Errorf("again: %q %v, %d debits", v, err, d.debits(t, "K"))
		}
	})
}

// TestEndAfterTheTimeout: the time of the work is over, that of recording how it ended is not.
func TestEndAfterTheTimeout(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		for status, end := range map[string]func(error) error{"FAIL UNKNOWN": onceward.Unknown, "FAIL FINAL": onceward.Final} {
			t.Run(fmt.Sprint(status, keep), func(t *testing.T) {
				t.Parallel()
				each(t, onceward.Operation{Timeout: 300 * time.Millisecond, Savepoint: keep}, func(t *testing.T, d *desk) {
					_, info, err := d.do(t.Context(), "K", func(ctx context.Context, tx *sql.Tx) (string, error) {
						if err := d.debit(ctx, tx, "K"); err != nil {
							return "", err
						}
						<-ctx.Done()
						return "", end(ctx.Err())
					})
					if err == nil || !info.Recorded || d.status(t, "K") != status || d.debits(t, "K") != 0 {
						t.Errorf("%+v %v, %q, %d debits", info, err, d.status(t, "K"), d.debits(t, "K"))
					}
				})
			})
		}
	}
}

// TestUnknownKeepsItsClaim: while what the work wrote is rolled back, nobody else gets the key, in Do with Savepoint and in
// Join.
func TestUnknownKeepsItsClaim(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{Savepoint: true, LockWait: 10 * time.Second}, func(t *testing.T, d *desk) {
		other := d.other(t)
		for i := range 6 {
			name := fmt.Sprint("K", i)
			var runs, ended atomic.Int64
			var wg sync.WaitGroup
			first := func(context.Context) error {
				runs.Add(1)
				for range 4 {
					wg.Go(func() {
						defer ended.Add(1)
						_, _, err := other.do(t.Context(), name, func(context.Context, *sql.Tx) (string, error) { runs.Add(1); return "", nil })
						if !errors.Is(err, onceward.ErrUnknown) && d.dialect.String() != "sqlite" {
							t.Errorf("%v", err)
						}
					})
				}
				waitFor(t, d, &ended)
				return onceward.Unknown(errors.New("no answer"))
			}
			var err error
			if i%2 == 0 {
				_, _, err = d.do(t.Context(), name, func(ctx context.Context, _ *sql.Tx) (string, error) { return "", first(ctx) })
			} else {
				d.within(t, true, func(tx *sql.Tx) {
					_, err = oncesql.Join(t.Context(), d.op, tx, onceward.Call{Key: k(name)}, func(ctx context.Context) (string, error) { return "", first(ctx) })
				})
			}
			wg.Wait()
			if !errors.Is(err, onceward.ErrUnknown) || runs.Load() != 1 || d.status(t, name) != "FAIL UNKNOWN" {
				t.Errorf("%s: %v, ran %d times, %q", name, err, runs.Load(), d.status(t, name))
			}
		}
	})
}

// waitFor waits until somebody waits for a lock, or nobody is left who could.
func waitFor(t *testing.T, d *desk, ended *atomic.Int64) {
	t.Helper()
	if d.dialect.String() == "sqlite" {
		return // one writer at a time: the others come when this one is over
	}
	query := map[string]string{
		"postgres": "SELECT count(*) FROM pg_locks WHERE NOT granted",
		"mysql":    "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'",
	}[d.dialect.String()]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for n := 0; n == 0 && ended.Load() < 4; {
		if err := d.admin.QueryRowContext(ctx, query).Scan(&n); err != nil {
			t.Error(err)
			return
		}
	}
}

// TestLockWaitOfALaterClaim: it holds where the record is there already, expired here, and another process is running it.
func TestLockWaitOfALaterClaim(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{LockWait: 100 * time.Millisecond}, func(t *testing.T, d *desk) {
		if d.dialect.String() == "sqlite" {
			t.Skip("a SQLite file has no locks of single keys")
		}
		if _, _, err := d.pay(t.Context(), "K"); err != nil {
			t.Fatal(err)
		}
		d.exec(t, "UPDATE "+d.records+" SET expires_at = '2020-01-01'")
		other := d.other(t)
		entered, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			v, _, err := other.do(t.Context(), "K", func(context.Context, *sql.Tx) (string, error) {
				close(entered)
				<-release
				return "second", nil
			})
			if v != "second" || err != nil {
				t.Errorf("%q %v", v, err)
			}
		})
		<-entered
		if _, _, err := d.pay(t.Context(), "K"); !errors.Is(err, onceward.ErrInFlight) {
			t.Errorf("%v", err)
		}
		close(release)
		wg.Wait()
	})
}

// TestJoinInFlight on a server whose own lock wait is short, and with it the end of the caller's transaction.
func TestJoinInFlight(t *testing.T) {
	t.Parallel()
	d := onServer(t, teststore.Postgres(t, "options=-clock_timeout%3D200"))
	d.define(t, onceward.Operation{})
	d.within(t, true, func(first *sql.Tx) {
		if _, _, err := d.join(t.Context(), first, "K", nil); err != nil {
			t.Fatal(err)
		}
		second, err := d.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = second.Rollback() }()
		if _, _, err := d.join(t.Context(), second, "K", nil); !errors.Is(err, onceward.ErrInFlight) {
			t.Errorf("%v", err)
		}
	})
}

// TestJoinNeedsATransaction: a handle would commit claim, work and end one by one.
func TestJoinNeedsATransaction(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		conn, err := d.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for _, exec := range []oncesql.Executor{d.db, conn} {
			_, err := oncesql.Join(t.Context(), d.op, exec, onceward.Call{Key: k("K")}, func(context.Context) (string, error) { t.Error("it ran"); return "", nil })
			if err == nil || !strings.Contains(err.Error(), "oncesql.Do") || d.status(t, "K") != "" {
				t.Errorf("%T: %v", exec, err)
			}
		}
	})
}

// noEnd is a transaction in which no end of an attempt can be written.
type noEnd struct{ *sql.Tx }

func (f noEnd) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if strings.HasPrefix(query, "UPDATE") {
		return nil, errors.New("the table is full")
	}
	return f.Tx.ExecContext(ctx, query, args...)
}

func (f noEnd) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if strings.HasPrefix(query, "UPDATE") {
		return nil, errors.New("the table is full")
	}
	return f.Tx.QueryContext(ctx, query, args...)
}

// TestJoinThatCannotEnd takes back what the work wrote, and says that the transaction is lost.
func TestJoinThatCannotEnd(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		d.within(t, true, func(tx *sql.Tx) {
			_, err := oncesql.Join(t.Context(), d.op, noEnd{tx}, onceward.Call{Key: k("K")}, func(ctx context.Context) (string, error) {
				return "paid K", d.debit(ctx, tx, "K")
			})
			if !errors.Is(err, onceward.ErrConflict) {
				t.Errorf("%v", err)
			}
		})
		if n := d.debits(t, "K"); n != 0 {
			t.Errorf("%d debits stayed", n)
		}
	})
}
