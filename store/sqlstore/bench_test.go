package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/key"
)

// BenchmarkFirst compares claim and finish with the hand-written minimum on the same kind of file: INSERT … ON CONFLICT DO
// NOTHING and UPDATE, each in a transaction of its own, at 1, 16 and 64 callers. Both are run in turns, and the median
// ratio of their rates is reported as x.
func BenchmarkFirst(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			compare(b, callers, 0, ours, theirs)
		})
	}
}

// BenchmarkGrowth is BenchmarkFirst at 16 callers on tables that hold records already, with the same ids in both: x must not
// fall as the tables grow. Keys are UUIDv7.
func BenchmarkGrowth(b *testing.B) {
	for _, rows := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			if b.N == 1 && rows > 10_000 {
				rows = 20_000 // run once, it only shows that it runs
			}
			compare(b, 16, rows, ours, theirs)
		})
	}
}

func ours(ctx context.Context, f *teststore.File, k string) error { return runOnce(ctx, f, k) }

func theirs(ctx context.Context, m *minimum, k string) error { return m.once(ctx, k) }

// BenchmarkReplay compares a duplicate of a finished key with the minimum's INSERT that finds a row, and its SELECT.
func BenchmarkReplay(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			compare(b, callers, 0, func(ctx context.Context, f *teststore.File, k string) error {
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
	if _, err := db.Exec(`CREATE TABLE t (id BLOB NOT NULL UNIQUE, status TEXT NOT NULL, result BLOB, at TEXT NOT NULL)`); err != nil {
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
	id := driver.Identify(driver.Scope{}, "pay", k)
	if _, err := m.insert.ExecContext(ctx, id[:]); err != nil {
		return err
	}
	_, err := m.finish.ExecContext(ctx, []byte(k), id[:])
	return err
}

func (m *minimum) replay(ctx context.Context) error {
	id := driver.Identify(driver.Scope{}, "pay", "done")
	if _, err := m.insert.ExecContext(ctx, id[:]); err != nil {
		return err
	}
	var result []byte
	return m.lookup.QueryRowContext(ctx, id[:]).Scan(&result)
}

// grow fills both tables with finished records of UUIDv7 keys, as many as rows, from the same ids.
func grow(b *testing.B, f *teststore.File, m *minimum, rows int) {
	b.Helper()
	if rows == 0 {
		return
	}
	ctx := b.Context()
	if err := runOnce(ctx, f, key.New().Reveal()); err != nil {
		b.Fatal(err)
	}
	columns := `namespace, tenant, caller, operation, idempotency_key, status, failure, fingerprint, attempt, died, max_attempts,
		fence, owner, lease_us, lease_until, deadline_at, on_lapse, repeatable_until, retention_us, result_codec, result_meta,
		result, tombstone, request, error, resolution, created_at, claimed_at, updated_at, completed_at, expires_at`
	ours, err := f.DB.PrepareContext(ctx, "INSERT INTO onceward_records (id, "+columns+") SELECT ?, "+columns+" FROM onceward_records WHERE nr = (SELECT max(nr) FROM onceward_records)")
	if err != nil {
		b.Fatal(err)
	}
	defer ours.Close()
	for done := 0; done < rows; {
		txs := [2]*sql.Tx{}
		for i, db := range []*sql.DB{f.DB, m.db} {
			if txs[i], err = db.BeginTx(ctx, nil); err != nil {
				b.Fatal(err)
			}
		}
		for range min(10_000, rows-done) {
			id := driver.Identify(driver.Scope{}, "pay", key.New().Reveal())
			_, err1 := txs[0].StmtContext(ctx, ours).ExecContext(ctx, id[:]) //nolint:sqlclosecheck // it ends with its transaction
			_, err2 := txs[1].ExecContext(ctx, "INSERT INTO t (id, status, result, at) VALUES (?, 'SUCCESS', 'r', datetime('now'))", id[:])
			if err := errors.Join(err1, err2); err != nil {
				b.Fatal(err)
			}
			done++
		}
		if err := errors.Join(txs[0].Commit(), txs[1].Commit()); err != nil {
			b.Fatal(err)
		}
	}
}

// compare runs both in many short turns, on tables that hold rows already, and reports the median of the ratios. The times
// that 99 of 100 calls stay under are of single calls.
func compare(b *testing.B, callers, rows int, ours func(context.Context, *teststore.File, string) error, theirs func(context.Context, *minimum, string) error) {
	b.Helper()
	f, m := teststore.OpenFile(b, filepath.Join(b.TempDir(), "o.db")), newMinimum(b)
	ctx := b.Context()
	if err := runOnce(ctx, f, "done"); err != nil {
		b.Fatal(err)
	}
	grow(b, f, m, rows)
	keys := make([]string, b.N+50*callers+callers)
	for i := range keys {
		keys[i] = key.New().Reveal()
	}
	const turns = 50
	per := max(b.N/turns, callers)
	own, other := run{next: keys}, run{next: keys}
	ratios := make([]float64, 0, turns)
	b.ResetTimer()
	for range turns {
		o := own.turn(b, callers, per, func(k string) error { return ours(ctx, f, k) })
		m := other.turn(b, callers, per, func(k string) error { return theirs(ctx, m, k) })
		ratios = append(ratios, float64(m)/float64(o))
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(own.each(), "own-ns/op")
	b.ReportMetric(other.each(), "minimum-ns/op")
	b.ReportMetric(own.p99(), "own-p99-ms")
	b.ReportMetric(other.p99(), "minimum-p99-ms")
	b.ReportMetric(ratios[turns/2], "x")
}

// run is what one side did in all its turns.
type run struct {
	next  []string // keys
	total time.Duration
	mu    sync.Mutex
	took  []time.Duration
}

// turn makes n calls from so many callers.
func (r *run) turn(b *testing.B, callers, n int, do func(k string) error) time.Duration {
	b.Helper()
	var wg sync.WaitGroup
	var done atomic.Int64
	keys := r.next[:n]
	r.next = r.next[n:]
	start := time.Now()
	for range callers {
		wg.Go(func() {
			var took []time.Duration
			for i := done.Add(1); i <= int64(n); i = done.Add(1) {
				begun := time.Now()
				if err := do(keys[i-1]); err != nil {
					b.Error(err)
					return
				}
				took = append(took, time.Since(begun))
			}
			r.mu.Lock()
			r.took = append(r.took, took...)
			r.mu.Unlock()
		})
	}
	wg.Wait()
	d := time.Since(start)
	r.total += d
	return d
}

func (r *run) each() float64 { return float64(r.total.Nanoseconds()) / float64(len(r.took)) }

func (r *run) p99() float64 {
	slices.Sort(r.took)
	return float64(r.took[len(r.took)*99/100].Microseconds()) / 1000
}
