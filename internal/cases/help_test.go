package cases

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncetest"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/storetest"
)

func TestMain(m *testing.M) {
	// These tests wait for disks, servers and heartbeats far more than they compute. A -parallel of the caller's still rules.
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait, so that a broken build fails instead of hanging.
const patience = 30 * time.Second

// world is one store, empty at first, with the processes on it and what they did.
type world struct {
	*testing.T
	h      *storetest.Harness
	stores []driver.Store // two objects on the same data
	opened int            // processes
	runs   atomic.Int64   // of all keys: each run leaves another receipt
	ledger oncetest.Ledger
}

// onEveryStore runs a test in a world of its own on each kind of store.
func onEveryStore(t *testing.T, run func(w *world)) {
	t.Helper()
	teststore.Each(t, func(t *testing.T, h *storetest.Harness) {
		w := &world{T: t, h: h, stores: []driver.Store{h.Open(t)}}
		second := w.stores[0]
		if h.Second != nil {
			second = h.Second(t, second)
		}
		w.stores = append(w.stores, second)
		run(w)
	})
}

// process is a guard with one operation, over the one store object or the other in turn.
type process struct {
	*onceward.Guard
	w     *world
	op    *onceward.Op
	store *faultstore.Store
	dead  bool

	mu     sync.Mutex
	events []onceward.Event
	more   chan struct{} // closed at the next event
}

func (w *world) process(o onceward.Operation) *process {
	w.Helper()
	return w.processOn(w.stores[w.opened%2], o, onceward.Options{SingleTenant: true})
}

func (w *world) processOn(store driver.Store, o onceward.Operation, opts onceward.Options) *process {
	w.Helper()
	w.opened++
	p := &process{w: w, store: faultstore.New(store), more: make(chan struct{})}
	opts.Logger, opts.Observer = slog.New(slog.DiscardHandler), p.note
	g, err := onceward.New(p.store, &opts)
	if err != nil {
		w.Fatal(err)
	}
	if o.Codec == nil {
		o.Codec = onceward.Raw{}
	}
	if o.Name == "" {
		o.Name = "pay"
	}
	p.Guard = g
	if p.op, err = g.Define(o); err != nil {
		w.Fatal(err)
	}
	number := w.opened
	w.Cleanup(func() {
		if w.Failed() {
			p.tell(number)
		}
		if p.dead {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), patience)
		defer cancel()
		if w.Failed() {
			cancel() // what is open then stays open
		}
		if lost, err := g.Close(ctx); (lost != 0 || err != nil) && !w.Failed() {
			w.Errorf("close: %d results lost, %v", lost, err)
		}
	})
	return p
}

// die stops the process as a kill does: its attempts write nothing more and send no heartbeats.
func (p *process) die() {
	ctx, cancel := context.WithCancel(p.w.Context())
	cancel()
	p.dead = true
	_, _ = p.Close(ctx)
}

func (p *process) note(e onceward.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	close(p.more)
	p.more = make(chan struct{})
}

// tell logs what was odd in a test that failed: calls of the store that took long or went wrong.
func (p *process) tell(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Err != nil && e.Kind != onceward.EventDecision || e.Kind == onceward.EventStore && e.Duration > time.Second {
			p.w.Logf("process %d: %d %s in %v: %v", number, e.Kind, e.Outcome, e.Duration, e.Err)
		}
	}
}

// heard counts events of a kind and outcome; more is closed at the next event of any.
func (p *process) heard(kind onceward.EventKind, outcome string) (n int, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Kind == kind && e.Outcome == outcome {
			n++
		}
	}
	return n, p.more
}

// await waits until a store call of the process has returned n times, or ctx ends.
func (p *process) await(ctx context.Context, call faultstore.Call, n int) {
	p.w.Helper()
	late := time.After(patience)
	for {
		got, more := p.heard(onceward.EventStore, string(call))
		if got >= n {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		case <-late:
			p.w.Errorf("%d of %d calls of %s", got, n, call)
			return
		}
	}
}

// wait is for what must come soon.
func (w *world) wait(c <-chan struct{}) {
	w.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		w.Error("waited in vain")
	}
}

// answer is what a caller got.
type answer struct {
	body []byte
	info onceward.Info
	err  error
}

func (a answer) String() string { return fmt.Sprintf("%q %+v %v", a.body, a.info, a.err) }

const payments = "POST /payments" // the request, unless a test says another

// pay runs work under the key: during, then a receipt that no other run gives.
func (p *process) pay(keyText string, during func(context.Context) error) answer {
	return p.do(p.w.Context(), keyText, payments, during)
}

func (p *process) do(ctx context.Context, keyText, request string, during func(context.Context) error) (a answer) {
	a.body, a.err = onceward.Do(ctx, p.op, onceward.Call{Key: k(keyText), Request: request, Info: &a.info}, func(ctx context.Context) ([]byte, error) {
		n := p.w.runs.Add(1)
		p.w.ledger.Add(keyText)
		p.w.ledger.Add(request + " " + keyText)
		if during != nil {
			if err := during(ctx); err != nil {
				return nil, err
			}
		}
		return fmt.Appendf(nil, "receipt %d \x00\xff", n), nil
	})
	return a
}

// begin claims the key and leaves the attempt open.
func (p *process) begin(keyText string) onceward.Decision {
	p.w.Helper()
	d, err := p.Begin(p.w.Context(), p.op, onceward.Call{Key: k(keyText), Request: payments})
	if err != nil {
		p.w.Fatalf("begin: %v", err)
	}
	return d
}

// leaveDead leaves the key as a process does that was killed in the middle of an attempt.
func (w *world) leaveDead(keyText string, o onceward.Operation) {
	w.Helper()
	p := w.process(o)
	if d := p.begin(keyText); d.Kind != onceward.KindRun {
		w.Fatalf("begin: %v", d.Kind)
	}
	p.die()
}

// plant leaves a record that a claim made and that ended with o.
func (w *world) plant(keyText string, o driver.Outcome) {
	w.Helper()
	sum, err := fingerprint.Of(payments)
	if err != nil {
		w.Fatal(err)
	}
	c := driver.Claim{
		ID: idOf(keyText), Operation: "pay", Key: keyText, Fingerprint: sum, Owner: driver.Owner{1},
		Lease: onceward.DefaultLease, Timeout: time.Hour, Retention: time.Hour, MaxAttempts: 5,
	}
	got, err := w.stores[0].Claim(w.Context(), c)
	if err != nil || got.Verdict != driver.GotClaim {
		w.Fatalf("claim: %+v %v", got, err)
	}
	end, err := w.stores[0].Finish(w.Context(), driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: 1, Outcome: o})
	if err != nil || !end.Applied {
		w.Fatalf("finish: %+v %v", end, err)
	}
}

func k(text string) key.Key {
	parsed, err := key.Parse(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

func idOf(keyText string) driver.ID { return driver.Identify(driver.Scope{}, "pay", keyText) }

func (w *world) record(keyText string) driver.Record {
	w.Helper()
	snap, err := w.stores[0].Get(w.Context(), idOf(keyText))
	if err != nil {
		w.Fatalf("get: %v", err)
	}
	return snap.Record
}

// shift lets time pass for a record that nobody is writing now.
func (w *world) shift(keyText string, d time.Duration) {
	w.Helper()
	w.h.Edit(w, w.stores[0], idOf(keyText), func(r *driver.Record) {
		for _, at := range []*time.Time{
			&r.LeaseUntil, &r.DeadlineAt, &r.RepeatableUntil, &r.CreatedAt, &r.ClaimedAt, &r.UpdatedAt, &r.CompletedAt, &r.ExpiresAt,
		} {
			if !at.IsZero() {
				*at = at.Add(-d)
			}
		}
	})
}

// sweeper is a store object as the janitor has it.
func (w *world) sweeper() janitor.Store {
	w.Helper()
	s, ok := w.stores[1].(janitor.Store)
	if !ok {
		w.Skipf("%T can't be swept: it is no driver.Sweeper", w.stores[1])
	}
	return s
}

func (w *world) sweep() janitor.Report {
	w.Helper()
	rep, err := janitor.Sweep(w.Context(), w.sweeper(), &janitor.Options{Pause: time.Nanosecond})
	if err != nil {
		w.Errorf("sweep: %v", err)
	}
	return rep
}

func (w *world) wantRuns(name string, n int) {
	w.Helper()
	if got := w.ledger.Count(name); got != n {
		w.Errorf("%q ran %d times, want %d", name, got, n)
	}
}

// wantReplay demands that a duplicate got the first result, byte for byte.
func (w *world) wantReplay(first []byte, a answer) {
	w.Helper()
	if a.err != nil || a.info.Kind != onceward.KindReplay || !bytes.Equal(a.body, first) {
		w.Errorf("got %v, want a replay of %q", a, first)
	}
}

// wantRun demands that the caller ran the work, as the attempt of that number, and that its result was recorded.
func (w *world) wantRun(number int, a answer) {
	w.Helper()
	if a.err != nil || a.info.Kind != onceward.KindRun || a.info.Attempt != number || !a.info.Recorded || len(a.body) == 0 {
		w.Errorf("got %v, want run %d", a, number)
	}
}

// wantRefused demands an answer of a code, and no result.
func (w *world) wantRefused(want *onceward.Error, a answer) {
	w.Helper()
	if !errors.Is(a.err, want) || a.body != nil {
		w.Errorf("got %v, want %v", a, want)
	}
}
