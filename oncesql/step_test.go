package oncesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/oncesql"
)

// order runs work in an attempt that is no transaction.
func (d *desk) order(t *testing.T, text string, o onceward.Operation, work func(context.Context) (string, error)) (string, error) {
	t.Helper()
	g := d.guard(t)
	o.Name = "order"
	op, err := g.Define(o)
	if err != nil {
		t.Fatal(err)
	}
	return onceward.Do(t.Context(), op, onceward.Call{Key: k(text)}, work)
}

func (d *desk) settle(text string) func(context.Context, *sql.Tx) (string, error) {
	return func(ctx context.Context, tx *sql.Tx) (string, error) { return "settled", d.debit(ctx, tx, text) }
}

var errAfter = errors.New("after the step")

// TestStepCommitsRowsAndResultTogether: a later attempt is given the result, and the rows are there once.
func TestStepCommitsRowsAndResultTogether(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		bank := 0
		for try := range 3 {
			v, err := d.order(t, "K", onceward.Operation{}, func(ctx context.Context) (string, error) {
				ref, err := onceward.Step(ctx, "bank", func(context.Context) (int, error) { bank++; return bank, nil })
				if err != nil {
					return "", err
				}
				v, err := oncesql.Step(ctx, d.db, "settle", d.settle("K"))
				if err == nil && try < 2 {
					err = errAfter
				}
				return fmt.Sprint(v, ref), err
			})
			if try < 2 && !errors.Is(err, errAfter) || try == 2 && (v != "settled1" || err != nil) {
				t.Errorf("try %d: %q %v", try, v, err)
			}
			if n := d.debits(t, "K"); n != 1 || bank != 1 {
				t.Errorf("try %d: %d debits, %d calls of the bank", try, n, bank)
			}
		}
	})
}

// TestStepRolledBackLeavesNothing: an error of fn, of any kind, and a panic.
func TestStepRolledBackLeavesNothing(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		for name, failing := range map[string]error{
			"plain": errors.New("no stock"), "broken": context.DeadlineExceeded, "final": onceward.Final(errors.New("no")), "unknown": onceward.Unknown(errors.New("who knows")),
		} {
			ran := 0
			work := func(ctx context.Context) (string, error) {
				return oncesql.Step(ctx, d.db, "settle", func(ctx context.Context, tx *sql.Tx) (string, error) {
					ran++
					if err := d.debit(ctx, tx, name); err != nil {
						t.Error(err)
					}
					if ran > 1 {
						return "settled", nil
					}
					return "", failing
				})
			}
			_, err := d.order(t, name, onceward.Operation{}, work)
			if !errors.Is(err, failing) && name != "final" || d.debits(t, name) != 0 {
				t.Errorf("%s: %v, %d debits", name, err, d.debits(t, name))
			}
			v, err := d.order(t, name, onceward.Operation{}, work)
			if runs := map[string]int{"plain": 2, "broken": 2, "final": 1, "unknown": 1}[name]; ran != runs || d.debits(t, name) != runs-1 {
				t.Errorf("%s, again: %q %v, run %d times, %d debits", name, v, err, ran, d.debits(t, name))
			}
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = d.order(t, "panics", onceward.Operation{Repeatable: true}, func(ctx context.Context) (string, error) {
				return oncesql.Step(ctx, d.db, "settle", func(ctx context.Context, tx *sql.Tx) (string, error) {
					if err := d.debit(ctx, tx, "panics"); err != nil {
						t.Error(err)
					}
					panic("in the step")
				})
			})
		}()
		if n := d.debits(t, "panics"); n != 0 {
			t.Errorf("%d debits of a step that panicked", n)
		}
	})
}

// TestStepIsFenced: a step of an attempt whose key was taken over leaves nothing, whatever its transaction holds.
func TestStepIsFenced(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		op := onceward.Operation{Repeatable: true}
		_, err := d.order(t, "K", op, func(ctx context.Context) (string, error) {
			a, _ := onceward.FromContext(ctx)
			id := driver.Identify(driver.Scope{}, "order", "K")
			// Its lease lapsed long ago, and another process takes the key.
			d.exec(t, fmt.Sprintf("UPDATE %s SET lease_until = '2001-01-01 00:00:00.000000' WHERE idempotency_key = 'K'", d.records))
			if v, err := d.order(t, "K", op, func(ctx context.Context) (string, error) { return oncesql.Step(ctx, d.db, "settle", d.settle("K")) }); v != "settled" || err != nil {
				t.Errorf("the other: %q %v", v, err)
			}
			v, err := oncesql.Step(ctx, d.db, "settle", d.settle("K"))
			if !errors.Is(err, onceward.ErrLeaseLost) {
				t.Errorf("%q %v", v, err)
			}
			if snap, err := d.store.Get(t.Context(), id); err != nil || snap.Record.Fence <= a.Fence() {
				t.Errorf("%v, fence %d after %d", err, snap.Record.Fence, a.Fence())
			}
			return "", err
		})
		if n := d.debits(t, "K"); n != 1 {
			t.Errorf("%v, %d debits", err, n)
		}
	})
}

// TestStepWhoseCommitReplyIsLost: what became of it is found out, and it is told as it is.
func TestStepWhoseCommitReplyIsLost(t *testing.T) {
	t.Parallel()
	for name, lands := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
				cut := &cutter{inner: d.db.Driver(), dsn: d.dsn, lands: lands}
				cut.next.Store(1)
				db := sql.OpenDB(cut)
				defer db.Close()
				work := func(ctx context.Context) (string, error) { return oncesql.Step(ctx, db, "settle", d.settle("K")) }
				v, err := d.order(t, "K", onceward.Operation{}, work)
				want := map[bool]int{true: 1, false: 0}[lands]
				if lands && (v != "settled" || err != nil) || !lands && !errors.Is(err, errCut) || d.debits(t, "K") != want {
					t.Errorf("%q %v, %d debits", v, err, d.debits(t, "K"))
				}
				if v, err := d.order(t, "K", onceward.Operation{}, work); v != "settled" || err != nil || d.debits(t, "K") != 1 {
					t.Errorf("again: %q %v, %d debits", v, err, d.debits(t, "K"))
				}
			})
		})
	}
}

// TestStepLetsHeartbeatsThrough: while fn works the record's row is not locked.
func TestStepLetsHeartbeatsThrough(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		if d.dialect == dialect.SQLite {
			t.Skip("whoever writes locks the whole file, heartbeats wait: the doc says so")
		}
		_, err := d.order(t, "K", onceward.Operation{Lease: 900 * time.Millisecond}, func(ctx context.Context) (string, error) {
			id := driver.Identify(driver.Scope{}, "order", "K")
			return oncesql.Step(ctx, d.db, "settle", func(ctx context.Context, tx *sql.Tx) (string, error) {
				if err := d.debit(ctx, tx, "K"); err != nil {
					return "", err
				}
				first, err := d.store.Get(ctx, id)
				for now := first; err == nil && !now.Record.LeaseUntil.After(first.Record.LeaseUntil); {
					now, err = d.store.Get(ctx, id)
				}
				return "settled", err
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestStepIsRefused(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		if _, err := oncesql.Step(t.Context(), d.db, "settle", d.settle("K")); !errors.Is(err, onceward.ErrNoAttempt) {
			t.Errorf("without an attempt: %v", err)
		}
		_, _, err := d.do(t.Context(), "K", func(ctx context.Context, _ *sql.Tx) (string, error) {
			if _, err := oncesql.Step(ctx, d.db, "settle", d.settle("K")); !errors.Is(err, onceward.ErrInsideTx) {
				t.Errorf("inside oncesql.Do: %v", err)
			}
			if _, err := onceward.Step(ctx, "bank", func(context.Context) (string, error) { return "", nil }); !errors.Is(err, onceward.ErrInsideTx) {
				t.Errorf("a step inside oncesql.Do: %v", err)
			}
			return "", nil
		})
		if err != nil {
			t.Error(err)
		}
		_, err = d.order(t, "L", onceward.Operation{}, func(ctx context.Context) (string, error) {
			return oncesql.Step(ctx, d.db, "settle", func(ctx context.Context, tx *sql.Tx) (string, error) {
				if _, err := onceward.Step(ctx, "bank", func(context.Context) (string, error) { return "", nil }); !errors.Is(err, onceward.ErrInsideTx) {
					t.Errorf("a step inside a step: %v", err)
				}
				return "settled", d.debit(ctx, tx, "L")
			})
		})
		if err != nil || d.debits(t, "K") != 0 || d.debits(t, "L") != 1 {
			t.Errorf("%v, %d, %d", err, d.debits(t, "K"), d.debits(t, "L"))
		}
	})
}
