//go:build unix

package crash

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncesql"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

// world is where a run takes place: the store, and the other sides' ledgers in files, which no process takes with it.
type world struct {
	dir      string
	file     *teststore.File // nil: the store is memory
	mem      *memstore.Store
	honoured time.Duration // what the manifest says of the bank; zero is the truth
}

func onSQLite(t storetest.T, dir string) *world {
	t.Helper()
	w := &world{dir: dir, file: teststore.OpenFile(t, filepath.Join(dir, "o.db"))}
	if _, err := w.file.DB.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS settled (k VARCHAR(64) NOT NULL)"); err != nil {
		t.Fatalf("%v", err)
	}
	return w
}

func onMemory(dir string) *world { return &world{dir: dir, mem: memstore.New(nil)} }

// process is a guard with the operation, on the world's store.
type process struct {
	*onceward.Guard
	w      *world
	op     *onceward.Op
	db     *sql.DB // of the business
	points *points
	first  func() // comes before the work; nil: nothing

	ctx  context.Context //nolint:containedctx // of the work, for who waits until it is cancelled
	step error           // of the last step
}

func (w *world) process(t storetest.T, p *points, lease time.Duration) *process {
	t.Helper()
	proc := &process{w: w, points: p}
	o := onceward.Operation{Name: "order", Lease: lease, StrictSteps: true, Effects: onceward.Effects{
		{Name: "bank", Way: onceward.ByStep, HonouredFor: w.honoured},
		{Name: "sms", Way: onceward.ByStep, HonouredFor: 24 * time.Hour},
		{Name: "settle", Way: onceward.BySameTx},
	}}
	var store driver.Store
	if w.mem != nil {
		store = &pointed{w.mem, p}
		o.Effects[2].Way = onceward.Natural
	} else {
		store = &pointedTx{pointed{w.file.Store, p}, w.file.Store}
		proc.db = p.open(w.file.DB, "file:"+w.file.Path+teststore.Pragmas)
		t.Cleanup(func() { _ = proc.db.Close() })
	}
	g, err := onceward.New(store, &onceward.Options{SingleTenant: true, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		proc.Guard = g
		proc.op, err = g.Define(o)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return proc
}

// end closes the guard, and fails when something is left that only a lapse can end.
func (p *process) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if lost, err := p.Close(ctx); lost != 0 || err != nil {
		t.Errorf("close: %d results given up, %v", lost, err)
	}
}

const patience = 20 * time.Second // bounds every wait

const orderKey = "order-1"

func orderID() driver.ID { return driver.Identify(driver.Scope{}, "order", orderKey) }

func (p *process) do(ctx context.Context) (answer string, info onceward.Info, err error) {
	k, err := key.Parse(orderKey)
	if err != nil {
		return "", info, err
	}
	answer, err = onceward.Do(ctx, p.op, onceward.Call{Key: k, Info: &info}, p.work)
	return answer, info, err
}

// work calls the bank, which does not know keys, and a sender of messages, which does; settles the own rows; and ends.
func (p *process) work(ctx context.Context) (string, error) {
	p.ctx = ctx
	if p.first != nil {
		p.first()
	}
	transfer, err := onceward.Step(ctx, "bank", p.bank)
	if p.step = err; err != nil {
		return "", err
	}
	message, err := onceward.Step(ctx, "sms", p.sms)
	if p.step = err; err != nil {
		return "", err
	}
	settled, err := p.settle(ctx)
	if p.step = err; err != nil {
		return "", err
	}
	return strings.Join([]string{transfer, message, settled}, ", "), nil
}

func (p *process) bank(context.Context) (string, error) {
	return through(p.points, "bank", func() (string, error) {
		n, err := p.w.note("bank", "transfer")
		return fmt.Sprint("transfer ", n), err
	})
}

func (p *process) sms(ctx context.Context) (string, error) {
	k, err := onceward.StepKey(ctx, "sms")
	if err != nil {
		return "", err
	}
	return through(p.points, "sms", func() (string, error) {
		_, err := p.w.note("sms", k.Reveal())
		return "message " + k.Reveal()[:8], err
	})
}

func (p *process) settle(ctx context.Context) (string, error) {
	if p.db == nil { // a value that is set, twice is like once
		return onceward.Step(ctx, "settle", func(context.Context) (string, error) {
			return through(p.points, "settle", func() (string, error) {
				return "settled", os.WriteFile(filepath.Join(p.w.dir, "settle"), []byte("settled"), 0o600)
			})
		})
	}
	return oncesql.Step(ctx, p.db, "settle", func(ctx context.Context, tx *sql.Tx) (string, error) {
		return through(p.points, "settle", func() (string, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO settled (k) VALUES (?)", orderKey)
			return "settled", err
		})
	})
}

// note appends a line to a ledger, and returns how many it has.
func (w *world) note(ledger, line string) (int, error) {
	f, err := os.OpenFile(filepath.Join(w.dir, ledger), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = f.WriteString(line + "\n")
	all, readErr := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	return strings.Count(string(all), "\n"), errors.Join(err, readErr, f.Close())
}

// tally is what the other sides and the own rows say was done.
type tally struct {
	Transfers int
	Messages  int // that were sent, one for each key
	Calls     int // of the sender
	Settled   int
}

func (w *world) tally(t *testing.T) (n tally) {
	t.Helper()
	lines := func(ledger string) []string {
		text, err := os.ReadFile(filepath.Join(w.dir, ledger))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	keys := lines("sms")
	n.Transfers, n.Calls = len(lines("bank")), len(keys)
	slices.Sort(keys)
	n.Messages = len(slices.Compact(keys))
	if w.mem != nil {
		n.Settled = len(lines("settle"))
	} else if err := w.file.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM settled WHERE k = ?", orderKey).Scan(&n.Settled); err != nil {
		t.Fatal(err)
	}
	return n
}

// record returns the record, and its zero value where there is none.
func (w *world) record(t *testing.T) driver.Snapshot {
	t.Helper()
	var store driver.Store = w.mem
	if w.mem == nil {
		store = w.file.Store
	}
	snap, err := store.Get(t.Context(), orderID())
	if err != nil && !errors.Is(err, driver.ErrNotFound) {
		t.Fatal(err)
	}
	return snap
}

// lapse lets the lease of a dead process and its grace pass, and the janitor come by.
func (w *world) lapse(t *testing.T) {
	t.Helper()
	if w.record(t).Record.Status == driver.Processing {
		harness := teststore.SQLite(t)
		harness.Edit(t, w.file, orderID(), func(r *driver.Record) {
			for _, at := range []*time.Time{&r.LeaseUntil, &r.DeadlineAt, &r.RepeatableUntil, &r.CreatedAt, &r.ClaimedAt, &r.UpdatedAt} {
				if !at.IsZero() {
					*at = at.Add(-time.Minute)
				}
			}
		})
	}
	w.sweep(t)
}

func (w *world) sweep(t *testing.T) janitor.Report {
	t.Helper()
	rep, err := janitor.Sweep(t.Context(), w.file.Store, &janitor.Options{Pause: time.Nanosecond})
	if err != nil {
		t.Error(err)
	}
	return rep
}

// The verdicts.
const (
	done    = "done"    // each effect happened once, and duplicates get the result
	unknown = "unknown" // nobody can tell, and the error says so and why
)

// verdict calls again with the key, in a process of its own, until there is a result or the outcome is unknown. What it finds
// to be wrong by then is no verdict.
func (w *world) verdict(t *testing.T) (string, []string) {
	t.Helper()
	p := w.process(t, &points{}, 0)
	defer p.end(t)
	var answer string
	var err error
	for range p.op.Policy().MaxAttempts {
		if answer, _, err = p.do(t.Context()); err == nil || errors.Is(err, onceward.ErrUnknown) {
			break
		}
	}
	is := w.tally(t)
	q := w.process(t, &points{}, 0) // whom the first one's memory does not help
	defer q.end(t)
	again, info, againErr := q.do(t.Context())
	var wrong []string
	if after := w.tally(t); after != is {
		wrong = append(wrong, fmt.Sprintf("a duplicate made %+v of %+v", after, is))
	}
	r := w.record(t).Record
	switch {
	case err == nil:
		if want := (tally{Transfers: 1, Messages: 1, Calls: is.Calls, Settled: 1}); is != want {
			wrong = append(wrong, fmt.Sprintf("%+v was done, not each once", is))
		}
		if againErr != nil || again != answer || info.Kind != onceward.KindReplay || r.Status != driver.Success {
			wrong = append(wrong, fmt.Sprintf("got %q, then %q %+v %v, and the record says %v", answer, again, info, againErr, r.Status))
		}
		return done, wrong
	case errors.Is(err, onceward.ErrUnknown):
		if is.Transfers > 1 || is.Calls > 0 || is.Settled > 0 {
			wrong = append(wrong, fmt.Sprintf("%+v was done", is))
		}
		for _, err := range []error{err, againErr} {
			if !errors.Is(err, onceward.ErrUnknown) || !strings.Contains(err.Error(), "step bank") {
				wrong = append(wrong, fmt.Sprintf("it does not say that step bank has no result: %v", err))
			}
		}
		if !r.Unclear() {
			wrong = append(wrong, fmt.Sprintf("the record says %v %v", r.Status, r.Failure))
		}
		return unknown, wrong
	}
	return "failed", append(wrong, err.Error())
}
