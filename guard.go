package onceward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
)

// Guard runs operations under their policies over one store. Made by New. Safe for concurrent use.
type Guard struct {
	*core
	bound *Bound // made by On
}

// core is what a guard shares with those that On makes of it.
type core struct {
	store   driver.Store
	opts    Options
	flights flights
	pending pending // results to be written
	returns pending // claims to be given back; apart, so that a courtesy never takes a result's place
	waiters waiters
	checked sync.Map // what Once has seen to go well

	mu     sync.Mutex
	ops    map[string]*Op
	closed bool
	live   int           // attempts begun and not ended
	idle   chan struct{} // made by Close, closed when live is 0
}

// Options of a Guard. Nil and the zero value are valid, but then every call needs a scope.
type Options struct {
	// SingleTenant states that all callers may share one key space; otherwise a call without scope is refused.
	SingleTenant bool

	// StoreTimeout bounds one store call of Begin, its retries included. Zero: 5 s.
	StoreTimeout time.Duration

	// FinishGrace is how long the end of an attempt waits for its result to be written; after that the caller gets
	// the value with Info.Recorded false and the write goes on in the background. Zero: 5 s.
	FinishGrace time.Duration

	// MaxUnrecorded and MaxUnrecordedBytes bound the results that wait in the background. Zero: 1,024 and 64 MiB.
	MaxUnrecorded      int
	MaxUnrecordedBytes int64

	// Observer gets every event. Nil: none.
	Observer Observer

	// Logger gets what needs a person: results given up, contradictions. Nil: slog.Default().
	Logger *slog.Logger
}

// New returns a Guard over store.
func New(store driver.Store, opts *Options) (*Guard, error) {
	if store == nil {
		return nil, errors.New("onceward: New needs a store: memstore.New for tests, sqlstore.Open for production")
	}
	g := &Guard{core: &core{store: store, ops: map[string]*Op{}}}
	if opts != nil {
		g.opts = *opts
	}
	o := &g.opts
	if o.StoreTimeout < 0 || o.FinishGrace < 0 || o.MaxUnrecorded < 0 || o.MaxUnrecordedBytes < 0 {
		return nil, errors.New("onceward: Options: a duration or limit is negative; zero means the default")
	}
	o.StoreTimeout = orDefault(o.StoreTimeout, 5*time.Second)
	o.FinishGrace = orDefault(o.FinishGrace, 5*time.Second)
	o.MaxUnrecorded = orDefault(o.MaxUnrecorded, 1024)
	o.MaxUnrecordedBytes = orDefault(o.MaxUnrecordedBytes, 64<<20)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	g.flights.init()
	g.pending.init(o.MaxUnrecorded, o.MaxUnrecordedBytes)
	g.returns.init(o.MaxUnrecorded, 0)
	return g, nil
}

// Define validates and registers an operation. A name is defined once.
func (g *Guard) Define(o Operation) (*Op, error) {
	if g.core == nil {
		return nil, errors.New("onceward: the guard has no store: make guards with New")
	}
	policy, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.ops[o.Name]; taken {
		return nil, fmt.Errorf("onceward: operation %q is defined already: define it once and share the *Op", o.Name)
	}
	op := &Op{guard: g, policy: policy}
	g.ops[o.Name] = op
	return op, nil
}

// SingleTenant reports whether calls may come without a scope.
func (g *Guard) SingleTenant() bool { return g.opts.SingleTenant }

// Close refuses new calls and waits until running attempts have ended and their results are written, or ctx ends.
// What is then unwritten is given up: it is logged and counted, and its record lapses. It returns how many.
func (g *Guard) Close(ctx context.Context) (givenUp int, err error) {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		g.idle = make(chan struct{})
		if g.live == 0 {
			close(g.idle)
		}
	}
	idle := g.idle
	g.mu.Unlock()

	select {
	case <-idle:
	case <-ctx.Done():
		select {
		case <-idle: // both are true: nothing was unfinished
		default:
			err = fmt.Errorf("onceward: closed with attempts unfinished: %w", context.Cause(ctx))
		}
	}
	givenUp = g.pending.close()
	g.returns.settle(ctx, g.opts.FinishGrace)
	g.returns.close()
	g.flights.abandon()
	return givenUp, err
}

// enter counts an attempt in; it fails when the guard is closed.
func (g *Guard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	g.live++
	return nil
}

func (g *Guard) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live--
	if g.closed && g.live == 0 {
		select {
		case <-g.idle:
		default:
			close(g.idle)
		}
	}
}

func orDefault[N int | int64 | time.Duration](n, standard N) N {
	if n == 0 {
		return standard
	}
	return n
}
