package onceward

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
)

// end records the outcome. The claim is never released because a write failed: it is tried for FinishGrace, then in
// the background while the heartbeat goes on.
func (a *Attempt) end(ctx context.Context, o driver.Outcome, keepBegun bool) (End, error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return End{}, ErrAttemptEnded
	}
	a.ended = true
	a.deadline = time.Time{} // the work is done; what remains must not run out of time
	a.mu.Unlock()
	if a.bypassed {
		a.guard.emit(Event{Kind: EventFinish, Operation: a.op.policy.Name, Key: a.key, Attempt: a.number, Duration: time.Since(a.begun), Outcome: "bypassed"})
		a.over(Decision{}, false)
		return End{}, nil
	}

	g := a.guard
	f := driver.Finish{Claim: a.claim, Fence: a.fence, Attempt: a.number, Died: a.died, Outcome: o, KeepBegun: keepBegun && a.steps.anyBegun()}
	detached := newBounded(ctx, g.opts.FinishGrace)
	defer detached.cancel()
	if a.inTx {
		reply, err := a.write(detached, &f)
		if err != nil { // the transaction is rolled back: nothing happened
			a.over(Decision{}, false)
			return End{}, txError(err)
		}
		return a.written(&f, reply), nil
	}
	for try := 0; ; try++ {
		reply, err := a.write(detached, &f)
		if err == nil {
			return a.written(&f, reply), nil
		}
		if detached.Err() != nil || pause(detached, backoff(try), nil) != nil {
			g.emit(Event{Kind: EventUnrecorded, Operation: a.op.policy.Name, Key: a.key, Attempt: a.number, Err: err})
			a.writeLater(f, err)
			return End{}, nil
		}
	}
}

func (a *Attempt) write(ctx context.Context, f *driver.Finish) (driver.Finished, error) {
	return timed(ctx, a.guard, "finish", a.op.policy.Name, func(ctx context.Context) (driver.Finished, error) {
		return a.store.Finish(ctx, *f)
	})
}

// written ends the attempt with what the store answered.
func (a *Attempt) written(f *driver.Finish, reply driver.Finished) End {
	r := &reply.Record
	g, name := a.guard, a.op.policy.Name
	d, err := a.op.decide(verdictOf(r), r, reply.Now)
	if err != nil {
		d = Decision{Kind: KindUnknown, Failure: err.Error()}
	}
	e := Event{Kind: EventFinish, Operation: name, Key: a.key, Attempt: a.number, Duration: time.Since(a.begun)}
	if reply.Applied {
		e.Outcome = f.Outcome.Status.String()
		if f.Outcome.Failure != 0 {
			e.Outcome += " " + f.Outcome.Failure.String()
		}
		g.emit(e)
		// A retryable end leaves the key free: followers begin anew and one of them runs.
		a.over(d, r.Final() || r.Failure == driver.Unknown)
		return End{Recorded: true, Decision: d, ExpiresAt: r.ExpiresAt}
	}
	e.Outcome = "superseded"
	g.emit(e)
	// Work that may not be repeated is superseded by a resolution alone, even when another run of it has begun since.
	resolved := r.Resolution != "" || !a.inTx && a.claim.OnLapse != driver.LapseRepeat && f.Outcome.Status == driver.Success && r.Owner != a.claim.Owner
	if resolved && !f.Outcome.Same(r) {
		g.emit(Event{Kind: EventContradiction, Operation: name, Key: a.key, Attempt: a.number})
		g.opts.Logger.Error("onceward: late truth contradicts a resolution: compare the record with what the work did",
			slog.String("operation", name), slog.Any("key", a.key), slog.String("resolution", r.Resolution),
			slog.String("late", f.Outcome.Status.String()+" "+f.Outcome.Failure.String()))
	}
	a.over(Decision{}, false)
	if !r.Final() {
		d.Kind = KindSuperseded
	}
	return End{Superseded: true, Decision: d, ExpiresAt: r.ExpiresAt}
}

// over ends everything that belongs to the attempt in this process.
func (a *Attempt) over(answer Decision, share bool) {
	a.stopBeat()
	a.guard.flights.land(a.flight, answer, nil, share)
	a.cancel(context.Canceled)
	a.guard.leave()
}

// pending bounds what waits in the background for the store, and gives it up together.
type pending struct {
	mu       sync.Mutex
	n        int
	bytes    int64
	maxN     int
	maxBytes int64
	quit     chan struct{} // closed: give up
	wg       sync.WaitGroup
	lost     int // given up since close
}

func (p *pending) init(n int, bytes int64) {
	p.maxN, p.maxBytes, p.quit = n, bytes, make(chan struct{})
}

// enter takes a place; false when there is none, or the guard has given up waiting.
func (p *pending) enter(bytes int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.quit:
		return false
	default:
	}
	if p.n >= p.maxN || p.bytes+bytes > p.maxBytes {
		return false
	}
	p.n++
	p.bytes += bytes
	p.wg.Add(1)
	return true
}

// missed counts a result that found no place after the guard had given up waiting.
func (p *pending) missed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.quit:
		p.lost++
	default:
	}
}

func (p *pending) leave(bytes int64, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n--
	p.bytes -= bytes
	if lost {
		p.lost++
	}
	p.wg.Done()
}

// settle waits until nothing is left, for a while.
func (p *pending) settle(ctx context.Context, d time.Duration) {
	settled := make(chan struct{})
	go func() {
		p.wg.Wait()
		close(settled)
	}()
	_ = pause(ctx, d, settled)
}

// close gives up what is not written yet, and returns how many results that were.
func (p *pending) close() int {
	p.mu.Lock()
	select {
	case <-p.quit:
	default:
		close(p.quit)
	}
	p.mu.Unlock()
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// background returns a context that ends when the guard gives up.
func (p *pending) background() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-p.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// writeLater tries a finish until it is written, superseded, or given up.
func (a *Attempt) writeLater(f driver.Finish, last error) {
	g := a.guard
	size := int64(len(f.Outcome.Result.Data) + len(f.Outcome.Result.Meta))
	if !g.pending.enter(size) {
		g.pending.missed()
		a.giveUp(last)
		return
	}
	go func() {
		ctx, cancel := g.pending.background()
		defer cancel()
		for try := 5; ; try++ {
			if pause(ctx, backoff(try), nil) != nil {
				a.giveUp(last)
				g.pending.leave(size, true)
				return
			}
			one, done := context.WithTimeout(ctx, g.opts.StoreTimeout)
			reply, err := a.write(one, &f)
			done()
			if err == nil {
				a.written(&f, reply)
				g.pending.leave(size, false)
				return
			}
			last = err
		}
	}()
}

// giveUp leaves the record to lapse.
func (a *Attempt) giveUp(last error) {
	g := a.guard
	g.emit(Event{Kind: EventGivenUp, Operation: a.op.policy.Name, Key: a.key, Attempt: a.number, Err: last})
	g.opts.Logger.Error("onceward: a result could not be recorded and is given up: its record lapses",
		slog.String("operation", a.op.policy.Name), slog.Any("key", a.key), slog.Any("error", last))
	a.over(Decision{}, false)
}

// giveBack makes sure, in the background, that a claim which may have been made but was never run under is not left
// to lapse into an unknown outcome. It is a courtesy: what it can't do, the lapse does, and a closing guard does not wait
// for it as it does for attempts.
func (g *Guard) giveBack(a *Attempt) {
	defer g.leave()
	if !g.returns.enter(0) {
		return
	}
	go func() {
		defer g.returns.leave(0, false)
		ctx, cancel := g.returns.background()
		defer cancel()
		for try := 0; try < 60 && pause(ctx, backoff(try), nil) == nil; try++ {
			one, done := context.WithTimeout(ctx, g.opts.StoreTimeout)
			gone, err := g.tryGiveBack(one, a)
			done()
			if err == nil && gone {
				return
			}
		}
	}()
}

// tryGiveBack reports whether our claim is certainly not in the store any more. A claim whose commit is still under
// way shows as absent, so that alone is not certain.
func (g *Guard) tryGiveBack(ctx context.Context, a *Attempt) (gone bool, err error) {
	s, err := g.store.Get(ctx, a.claim.ID)
	if errors.Is(err, driver.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if s.Record.Owner != a.claim.Owner {
		return s.Record.Status != driver.Processing || !s.Record.LeaseUntil.IsZero(), nil
	}
	f := driver.Finish{
		Claim: a.claim, Fence: s.Record.Fence, Attempt: s.Record.Attempt, Died: s.Record.Died,
		Outcome: driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "claimed, never run: the claim's answer came too late"},
	}
	_, err = a.write(ctx, &f)
	return err == nil, err
}
