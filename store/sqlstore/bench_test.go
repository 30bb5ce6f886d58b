package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
)

// BenchmarkFirst compares claim and finish with the hand-written minimum on the same kind of file: INSERT … ON CONFLICT DO
// NOTHING and UPDATE, each in a transaction of its own, at 1, 16 and 64 callers. Both are run in turns, and the median
// ratio of their rates is reported as x.
func BenchmarkFirst(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			compare(b, callers, func(ctx context.Context, f *teststore.File, k string) error { return runOnce(ctx, f, k) },
				func(ctx context.Context, m *minimum, k string) error { return m.once(ctx, k) })
		})
	}
}

// BenchmarkReplay compares a duplicate of a finished key with the minimum's INSERT that finds a row, and its SELECT.
func BenchmarkReplay(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			compare(b, callers, func(ctx context.Context, f *teststore.File, k string) error {
				got, err := f.Claim(ctx, claimOf("done"))
				if err == nil && got.Verdict != driver.Done {
					err = fmt.Errorf("verdict %d", got.Verdict)
				}
				return err
			}, func(ctx context.Context, m *minimum, _ string) error { return m.replay(ctx) })
		})
	}
}

// minimum is what one would write by hand.
type minimum struct {
	db                     *sql.DB
	insert, finish, lookup *sql.Stmt
}

func newMinimum(b *testing.B) *minimum {
	b.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(b.TempDir(), "m.db")+teststore.Pragmas)
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	if _, err := db.Exec(`CREATE TABLE t (id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, result BLOB, at TEXT NOT NULL)`); err != nil {
		b.Fatal(err)
	}
	m := &minimum{db: db}
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&m.insert, "INSERT INTO t (id, status, at) VALUES (?, 'PROCESSING', datetime('now')) ON CONFLICT DO NOTHING"},
		{&m.finish, "UPDATE t SET status = 'SUCCESS', result = ? WHERE id = ?"},
		{&m.lookup, "SELECT result FROM t WHERE id = ? AND status = 'SUCCESS'"},
	} {
		if *p.into, err = db.Prepare(p.text); err != nil { //nolint:sqlclosecheck // closed with its database
			b.Fatal(err)
		}
	}
	b.Cleanup(func() { _ = db.Close() })
	if err := m.once(b.Context(), "done"); err != nil {
		b.Fatal(err)
	}
	return m
}

func (m *minimum) once(ctx context.Context, k string) error {
	if _, err := m.insert.ExecContext(ctx, k); err != nil {
		return err
	}
	_, err := m.finish.ExecContext(ctx, []byte(k), k)
	return err
}

func (m *minimum) replay(ctx context.Context) error {
	if _, err := m.insert.ExecContext(ctx, "done"); err != nil {
		return err
	}
	var result []byte
	return m.lookup.QueryRowContext(ctx, "done").Scan(&result)
}

// compare runs both in many short turns and reports the median of the ratios.
func compare(b *testing.B, callers int, ours func(context.Context, *teststore.File, string) error, theirs func(context.Context, *minimum, string) error) {
	b.Helper()
	f, m := teststore.OpenFile(b, filepath.Join(b.TempDir(), "o.db")), newMinimum(b)
	ctx := b.Context()
	if err := runOnce(ctx, f, "done"); err != nil {
		b.Fatal(err)
	}
	var seq atomic.Int64
	turn := func(n int, do func(k string) error) time.Duration {
		var wg sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(n))
		start := time.Now()
		for range callers {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if err := do(fmt.Sprint("k", seq.Add(1))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	const turns = 50
	per := max(b.N/turns, callers)
	var own, other time.Duration
	ratios := make([]float64, 0, turns)
	b.ResetTimer()
	for range turns {
		o := turn(per, func(k string) error { return ours(ctx, f, k) })
		m := turn(per, func(k string) error { return theirs(ctx, m, k) })
		own, other = own+o, other+m
		ratios = append(ratios, float64(m)/float64(o))
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(own.Nanoseconds())/float64(per*turns), "own-ns/op")
	b.ReportMetric(float64(other.Nanoseconds())/float64(per*turns), "minimum-ns/op")
	b.ReportMetric(ratios[turns/2], "x")
}
