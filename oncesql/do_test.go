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
	"github.com/onceward/onceward/oncesql"
)

// TestRecordAndWorkAreOne: the first run commits both, a duplicate gets the first result, another request is refused.
func TestRecordAndWorkAreOne(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		for i, kind := range []onceward.Kind{onceward.KindRun, onceward.KindReplay, onceward.KindReplay} {
			if v, info, err := d.pay(t.Context(), "K"); v != "paid K" || err != nil || info.Kind != kind || !info.Recorded || info.ExpiresAt.IsZero() {
				t.Errorf("call %d: %q %+v %v", i, v, info, err)
			}
		}
		_, err := oncesql.Do(t.Context(), d.op, d.db, onceward.Call{Key: k("K"), Request: "another"}, func(context.Context, *sql.Tx) (string, error) { return "", nil })
		if !errors.Is(err, onceward.ErrMismatch) {
			t.Errorf("%v", err)
		}
		if n, s := d.debits(t, "K"), d.status(t, "K"); n != 1 || s != "SUCCESS" {
			t.Errorf("%d debits, %s", n, s)
		}
		if n := d.db.Stats().InUse; n != 0 {
			t.Errorf("%d connections in use", n)
		}
	})
}

// TestWhatAnEndLeaves: what the work wrote, what the record says, and what a duplicate gets, for every way to end.
func TestWhatAnEndLeaves(t *testing.T) {
	t.Parallel()
	no := errors.New("no money")
	for name, c := range map[string]struct {
		o      onceward.Operation
		end    func() error
		status string
		again  error // nil: it runs again
	}{
		"plain error":         {end: func() error { return no }},
		"broken conversation": {end: func() error { return context.DeadlineExceeded }},
		"strict":              {o: onceward.Operation{OnError: onceward.Strict}, end: func() error { return no }},
		"retryable":           {end: func() error { return onceward.Retryable(no) }},
		"panic":               {end: func() error { panic("the work") }},
		"final":               {end: func() error { return onceward.Final(no) }, status: "FAIL FINAL", again: &onceward.FinalError{}},
		"every error is kept": {o: onceward.Operation{OnError: onceward.KeepFailure}, end: func() error { return no }, status: "FAIL FINAL", again: &onceward.FinalError{}},
		"unknown":             {end: func() error { return onceward.Unknown(no) }, status: "FAIL UNKNOWN", again: onceward.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, c.o, func(t *testing.T, d *desk) {
				func() {
					defer func() {
						if p := recover(); (p != nil) != (name == "panic") {
							t.Errorf("recovered %v", p)
						}
					}()
					_, _, err := d.do(t.Context(), "K", func(ctx context.Context, tx *sql.Tx) (string, error) {
						if err := d.debit(ctx, tx, "K"); err != nil {
							t.Error(err)
						}
						return "", c.end()
					})
					if err == nil {
						t.Error("no error")
					}
				}()
				if n, s := d.debits(t, "K"), d.status(t, "K"); n != 0 || s != c.status {
					t.Errorf("%d debits stayed, the record says %q", n, s)
				}
				v, _, err := d.pay(t.Context(), "K")
				var final *onceward.FinalError
				switch {
				case c.again == nil:
					if v != "paid K" || err != nil || d.debits(t, "K") != 1 {
						t.Errorf("again: %q %v", v, err)
					}
				case errors.As(c.again, &final):
					if !errors.As(err, &final) || final.Text != "no money" {
						t.Errorf("again: %v", err)
					}
				case !errors.Is(err, c.again):
					t.Errorf("again: %v", err)
				}
				if n := d.db.Stats().InUse; n != 0 {
					t.Errorf("%d connections in use", n)
				}
			})
		})
	}
}

// TestStormOverTwoProcesses: a hundred calls of one key in each of two processes make one debit and one result.
func TestStormOverTwoProcesses(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{OnInFlight: onceward.Wait(30 * time.Second), LockWait: 5 * time.Second}, func(t *testing.T, d *desk) {
		var wg sync.WaitGroup
		var ran, replayed, busy atomic.Int64
		for _, p := range []*desk{d, d.other(t)} {
			for range 100 {
				wg.Go(func() {
					v, info, err := p.pay(t.Context(), "K")
					switch {
					case errors.Is(err, onceward.ErrInFlight):
						busy.Add(1) // above the waiters of one key
					case err != nil || v != "paid K":
						t.Errorf("%q %v", v, err)
					case info.Kind == onceward.KindRun:
						ran.Add(1)
					default:
						replayed.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if ran.Load() != 1 || d.debits(t, "K") != 1 || replayed.Load() < 64 {
			t.Errorf("%d ran, %d replayed, %d in flight, %d debits", ran.Load(), replayed.Load(), busy.Load(), d.debits(t, "K"))
		}
	})
}

// TestManyKeysAtOnce: nobody stands in another's way.
func TestManyKeysAtOnce(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{Reruns: 10}, func(t *testing.T, d *desk) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for n := range 8 {
					text := fmt.Sprintf("K%d-%d", i, n/2)
					if v, _, err := d.pay(t.Context(), text); v != "paid "+text || err != nil {
						t.Errorf("%q %v", v, err)
					}
				}
			})
		}
		wg.Wait()
		var rows, keys int
		if err := d.admin.QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(DISTINCT k) FROM "+d.table).Scan(&rows, &keys); err != nil || rows != 64 || keys != 64 {
			t.Errorf("%d rows of %d keys: %v", rows, keys, err)
		}
	})
}

// TestForeignTransactionIsWaitedFor, as long as LockWait says, and then the key is in flight. The other's lock does not
// outlast the wait, nor does the wait outlast the claim.
func TestForeignTransactionIsWaitedFor(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{LockWait: 100 * time.Millisecond}, func(t *testing.T, d *desk) {
		if d.dialect.String() == "sqlite" {
			t.Skip("one writer at a time: a SQLite file has no locks of single keys")
		}
		other := d.other(t)
		entered, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, err := other.do(t.Context(), "K", func(ctx context.Context, tx *sql.Tx) (string, error) {
				close(entered)
				<-release
				return "first", other.debit(ctx, tx, "K")
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-entered
		if _, info, err := d.pay(t.Context(), "K"); !errors.Is(err, onceward.ErrInFlight) || info.RetryAfter < time.Second {
			t.Errorf("%+v %v", info, err)
		}
		if v, _, err := d.pay(t.Context(), "L"); v != "paid L" || err != nil {
			t.Errorf("another key: %q %v", v, err)
		}
		close(release)
		wg.Wait()
		if v, info, err := d.pay(t.Context(), "K"); v != "first" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("afterwards: %q %+v %v", v, info, err)
		}
	})
}

// TestLockWaitIsPutBack: the work's own statements wait as the session was told to.
func TestLockWaitIsPutBack(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{LockWait: 1234 * time.Millisecond}, func(t *testing.T, d *desk) {
		ask := map[string]string{"postgres": "SELECT current_setting('lock_timeout')", "mysql": "SELECT @@innodb_lock_wait_timeout"}[d.dialect.String()]
		if ask == "" {
			t.Skip("SQLite has no such setting of a transaction")
		}
		var before string
		if err := d.db.QueryRowContext(t.Context(), ask).Scan(&before); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			inside := before
			_, _, err := d.do(t.Context(), "K", func(ctx context.Context, tx *sql.Tx) (string, error) {
				return "", errors.Join(tx.QueryRowContext(ctx, ask).Scan(&inside), errors.New("again"))
			})
			if inside != before || err == nil {
				t.Errorf("%s inside, %s before: %v", inside, before, err)
			}
		}
	})
}

// TestInsideItsOwnTransaction a guarded call of the same store would wait for itself.
func TestInsideItsOwnTransaction(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		plain, err := d.Define(onceward.Operation{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		second, err := d.Define(onceward.Operation{Name: "second", Tx: true})
		if err != nil {
			t.Fatal(err)
		}
		work := func(context.Context) (string, error) { t.Error("it ran"); return "", nil }
		_, _, err = d.do(t.Context(), "K", func(ctx context.Context, tx *sql.Tx) (string, error) {
			if _, err := onceward.Do(ctx, plain, onceward.Call{Key: k("K")}, work); !errors.Is(err, onceward.ErrInsideTx) {
				t.Errorf("Do: %v", err)
			}
			if _, err := oncesql.Do(ctx, second, d.db, onceward.Call{Key: k("K")}, func(ctx context.Context, _ *sql.Tx) (string, error) { return work(ctx) }); !errors.Is(err, onceward.ErrInsideTx) {
				t.Errorf("oncesql.Do: %v", err)
			}
			v, err := oncesql.Join(ctx, second, tx, onceward.Call{Key: k("K")}, func(ctx context.Context) (string, error) { return "joined", d.debit(ctx, tx, "inner") })
			if v != "joined" || err != nil {
				t.Errorf("Join: %q %v", v, err)
			}
			return "", d.debit(ctx, tx, "K")
		})
		if err != nil || d.debits(t, "K") != 1 || d.debits(t, "inner") != 1 {
			t.Errorf("%v, %d and %d debits", err, d.debits(t, "K"), d.debits(t, "inner"))
		}
	})
}

// TestKindsAreNotMixed: each front door names the other.
func TestKindsAreNotMixed(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		plain, err := d.Define(onceward.Operation{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K")}, func(context.Context) (string, error) { return "", nil }); err == nil {
			t.Error("Do took an operation of the transaction kind")
		}
		if _, err := oncesql.Do(t.Context(), plain, d.db, onceward.Call{Key: k("K")}, func(context.Context, *sql.Tx) (string, error) { return "", nil }); err == nil {
			t.Error("oncesql.Do took another operation")
		}
	})
}

// TestOtherDatabaseIsRefused, although tables of the same names are there. On a server that is a restored copy, or another
// server behind the handle: all that tells them apart is the store's id.
func TestOtherDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		d.exec(t, "UPDATE "+strings.TrimSuffix(d.records, "records")+"meta SET value = '00000000000000000000000000000000' WHERE name = 'store_id'")
		_, _, err := d.do(t.Context(), "K", func(context.Context, *sql.Tx) (string, error) { t.Error("it ran"); return "", nil })
		if !errors.Is(err, onceward.ErrOtherDatabase) {
			t.Errorf("Do: %v", err)
		}
		d.within(t, false, func(tx *sql.Tx) {
			_, err := oncesql.Join(t.Context(), d.op, tx, onceward.Call{Key: k("K")}, func(context.Context) (string, error) { t.Error("it ran"); return "", nil })
			if !errors.Is(err, onceward.ErrOtherDatabase) {
				t.Errorf("Join: %v", err)
			}
		})
		if n := d.db.Stats().InUse; n != 0 {
			t.Errorf("%d connections in use", n)
		}
	})
}

// TestOtherFileIsRefused, whether it has tables or not.
func TestOtherFileIsRefused(t *testing.T) {
	t.Parallel()
	d := onFile(t)
	d.define(t, onceward.Operation{})
	empty, err := sql.Open("sqlite3", "file:"+t.TempDir()+"/empty.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = empty.Close() }()
	for _, db := range []*sql.DB{onFile(t).db, empty} {
		_, err := oncesql.Do(t.Context(), d.op, db, onceward.Call{Key: k("K")}, func(context.Context, *sql.Tx) (string, error) { t.Error("it ran"); return "", nil })
		if !errors.Is(err, onceward.ErrOtherDatabase) {
			t.Errorf("%v", err)
		}
	}
}

// TestDriverErrorsAreTold: an error of the database in the work is the work's error, and nothing happened.
func TestDriverErrorsAreTold(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		_, _, err := d.do(t.Context(), "K", func(ctx context.Context, tx *sql.Tx) (string, error) {
			if err := d.debit(ctx, tx, "K"); err != nil {
				return "", err
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO nowhere VALUES (1)")
			return "", err
		})
		if err == nil || errors.Is(err, onceward.ErrUnknown) || d.debits(t, "K") != 0 || d.status(t, "K") != "" {
			t.Errorf("%v, %d debits, %q", err, d.debits(t, "K"), d.status(t, "K"))
		}
		// Work that hides the error: PostgreSQL's transaction is dead, and the end says so.
		v, _, err := d.do(t.Context(), "L", func(ctx context.Context, tx *sql.Tx) (string, error) {
			_, _ = tx.ExecContext(ctx, "INSERT INTO nowhere VALUES (1)")
			return "done", d.debit(ctx, tx, "L")
		})
		if d.dialect.String() == "postgres" {
			if err == nil || d.debits(t, "L") != 0 || d.status(t, "L") != "" {
				t.Errorf("%q %v, %d debits", v, err, d.debits(t, "L"))
			}
		} else if v != "done" || err != nil || d.debits(t, "L") != 1 {
			t.Errorf("%q %v, %d debits", v, err, d.debits(t, "L"))
		}
	})
}
