package oncesql_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncesql"
)

// within runs f in a transaction that the caller commits, or rolls back.
func (d *desk) within(t *testing.T, commit bool, f func(tx *sql.Tx)) {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f(tx)
	if commit {
		err = tx.Commit()
	} else {
		err = tx.Rollback()
	}
	if err != nil {
		t.Error(err)
	}
}

func (d *desk) join(ctx context.Context, tx *sql.Tx, text string, end error) (string, onceward.Info, error) {
	var info onceward.Info
	v, err := oncesql.Join(ctx, d.op, tx, onceward.Call{Key: k(text), Info: &info}, func(ctx context.Context) (string, error) {
		return "paid " + text, errors.Join(d.debit(ctx, tx, text), end)
	})
	return v, info, err
}

// TestCaseB058JoinLeavesTheTransactionAlive: a duplicate is a replay in a transaction that goes on, on every database.
func TestCaseB058JoinLeavesTheTransactionAlive(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		if _, _, err := d.pay(t.Context(), "K"); err != nil {
			t.Fatal(err)
		}
		d.within(t, true, func(tx *sql.Tx) {
			if err := d.debit(t.Context(), tx, "before"); err != nil {
				t.Error(err)
			}
			if v, info, err := d.join(t.Context(), tx, "K", nil); v != "paid K" || err != nil || info.Kind != onceward.KindReplay {
				t.Errorf("%q %+v %v", v, info, err)
			}
			if err := d.debit(t.Context(), tx, "after"); err != nil {
				t.Error(err)
			}
		})
		if d.debits(t, "K") != 1 || d.debits(t, "before") != 1 || d.debits(t, "after") != 1 {
			t.Errorf("%d, %d and %d rows", d.debits(t, "K"), d.debits(t, "before"), d.debits(t, "after"))
		}
	})
}

// TestJoinHoldsOnlyWhenCommitted, and then for everybody.
func TestJoinHoldsOnlyWhenCommitted(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		for _, commit := range []bool{false, true} {
			d.within(t, commit, func(tx *sql.Tx) {
				for i, kind := range []onceward.Kind{onceward.KindRun, onceward.KindReplay} {
					if v, info, err := d.join(t.Context(), tx, "K", nil); v != "paid K" || err != nil || info.Kind != kind {
						t.Errorf("call %d: %q %+v %v", i, v, info, err)
					}
				}
			})
			want := map[bool]int{false: 0, true: 1}[commit]
			if n := d.debits(t, "K"); n != want || (d.status(t, "K") == "SUCCESS") != commit {
				t.Errorf("commit %v: %d debits, %q", commit, n, d.status(t, "K"))
			}
		}
		if v, info, err := d.pay(t.Context(), "K"); v != "paid K" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("%q %+v %v", v, info, err)
		}
	})
}

// TestJoinAfterAnError: the transaction is as it was before, and an answer no stays in it.
func TestJoinAfterAnError(t *testing.T) {
	t.Parallel()
	no := errors.New("no money")
	for name, c := range map[string]struct {
		end    error
		status string
	}{
		"plain": {no, "SUCCESS"}, "final": {onceward.Final(no), "FAIL FINAL"}, "unknown": {onceward.Unknown(no), "FAIL UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
				d.within(t, true, func(tx *sql.Tx) {
					if err := d.debit(t.Context(), tx, "before"); err != nil {
						t.Error(err)
					}
					if _, _, err := d.join(t.Context(), tx, "K", c.end); err == nil {
						t.Error("no error")
					}
					if _, _, err := d.join(t.Context(), tx, "L", nil); err != nil {
						t.Errorf("another key afterwards: %v", err)
					}
					if c.status == "SUCCESS" {
						if v, _, err := d.join(t.Context(), tx, "K", nil); v != "paid K" || err != nil {
							t.Errorf("the same key again: %q %v", v, err)
						}
					} else if _, _, err := d.join(t.Context(), tx, "K", nil); err == nil {
						t.Error("it ran again")
					}
				})
				want := 0
				if c.status == "SUCCESS" {
					want = 1
				}
				if d.debits(t, "before") != 1 || d.debits(t, "L") != 1 || d.debits(t, "K") != want || d.status(t, "K") != c.status {
					t.Errorf("%d before, %d of L, %d of K, %q", d.debits(t, "before"), d.debits(t, "L"), d.debits(t, "K"), d.status(t, "K"))
				}
			})
		})
	}
}

// TestJoinInsideJoin: the outer one's failure takes the inner one back, and not the other way round.
func TestJoinInsideJoin(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		no := errors.New("no")
		d.within(t, true, func(tx *sql.Tx) {
			_, err := oncesql.Join(t.Context(), d.op, tx, onceward.Call{Key: k("outer")}, func(ctx context.Context) (string, error) {
				if _, _, err := d.join(ctx, tx, "inner", no); !errors.Is(err, no) {
					t.Errorf("%v", err)
				}
				return "", d.debit(ctx, tx, "outer")
			})
			if err != nil {
				t.Error(err)
			}
			_, err = oncesql.Join(t.Context(), d.op, tx, onceward.Call{Key: k("outer2")}, func(ctx context.Context) (string, error) {
				if _, _, err := d.join(ctx, tx, "inner2", nil); err != nil {
					t.Error(err)
				}
				return "", no
			})
			if !errors.Is(err, no) {
				t.Error(err)
			}
		})
		if d.debits(t, "outer") != 1 || d.debits(t, "inner") != 0 || d.debits(t, "inner2") != 0 || d.status(t, "inner2") != "" || d.status(t, "outer") != "SUCCESS" {
			t.Errorf("%d %d %d, %q %q", d.debits(t, "outer"), d.debits(t, "inner"), d.debits(t, "inner2"), d.status(t, "inner2"), d.status(t, "outer"))
		}
	})
}

// TestJoinReadsTheWinner although its snapshot is older: never a second run, never "absent".
func TestJoinReadsTheWinner(t *testing.T) {
	t.Parallel()
	each(t, onceward.Operation{}, func(t *testing.T, d *desk) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			text := level.String()[:4]
			if d.dialect.String() == "sqlite" {
				level = sql.LevelDefault
			}
			tx, err := d.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			snapshot := "SELECT COUNT(*) FROM " + d.table
			if d.dialect.String() == "mysql" && level == sql.LevelSerializable {
				snapshot = "SELECT 1" // there every read takes locks instead of a snapshot, and the winner would wait for them
			}
			var n int
			if err := tx.QueryRowContext(t.Context(), snapshot).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if d.dialect.String() == "sqlite" {
				_ = tx.Rollback() // its handle begins with the write lock: nobody else can win meanwhile
			}
			if _, _, err := d.pay(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if d.dialect.String() != "sqlite" {
				v, info, err := d.join(t.Context(), tx, text, nil)
				replay := v == "paid "+text && err == nil && info.Kind == onceward.KindReplay
				if !replay && !errors.Is(err, onceward.ErrConflict) {
					t.Errorf("%v: %q %+v %v", level, v, info, err)
				}
				_ = tx.Rollback()
			}
			if n := d.debits(t, text); n != 1 {
				t.Errorf("%v: %d debits", level, n)
			}
		}
	})
}
