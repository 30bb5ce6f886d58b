package onceward

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
)

// Attempt is one run of the work under a claim. It heartbeats by itself until it is ended by Succeed or Fail; an
// attempt that is never ended keeps its key in flight until its timeout and then lapses.
type Attempt struct {
	guard  *Guard
	op     *Op
	flight *flight
	key    key.Key
	claim  driver.Claim

	fence     int64
	number    int
	died      int
	takeover  bool
	bypassed  bool         // unguarded: there is no claim
	store     driver.Store // that of the guard, or bound to the attempt's transaction
	inTx      bool
	begun     time.Time // before the claim was sent
	claimedAt time.Time // by the store's clock
	keyed     time.Time // until when calls by key may be made again, by the store's clock; zero: without end

	steps steps

	ctx    attemptContext
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	ended    bool        // Succeed or Fail was called
	stopped  bool        // no more heartbeats
	renewing bool        // a heartbeat is on its way
	valid    time.Time   // monotonic: the claim is good until here, as far as this process knows
	nextBeat time.Time   // when the next heartbeat is due
	deadline time.Time   // end of the timeout; zero once the work has returned
	timer    *time.Timer // of whichever of the above comes first
}

// attemptContext is what the work gets: the caller's values without its cancellation, cancelled when the claim is no
// longer valid or the timeout is over.
type attemptContext struct {
	context.Context
	attempt *Attempt
	values  callersValues
}

// callersValues are a context that never ends, like context.WithoutCancel's, without making one.
type callersValues struct{ caller context.Context }

func (*callersValues) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*callersValues) Done() <-chan struct{}       { return nil }
func (*callersValues) Err() error                  { return nil }
func (c *callersValues) Value(k any) any           { return context.WithoutCancel(c.caller).Value(k) }

type attemptKey struct{}

func (c *attemptContext) Value(k any) any {
	switch k.(type) {
	case attemptKey:
		return c.attempt
	case insideTx:
		if c.attempt.inTx {
			return c.attempt.guard.core
		}
	}
	return c.Context.Value(k)
}

func (c *attemptContext) Deadline() (time.Time, bool) {
	return c.attempt.begun.Add(c.attempt.op.policy.Timeout), true
}

func (c *attemptContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// FromContext returns the attempt that ctx belongs to.
func FromContext(ctx context.Context) (*Attempt, bool) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	return a, ok
}

// CallerGone returns a channel that is closed when the caller of the attempt in ctx has hung up. The work goes on
// regardless; this tells those who want to know. Nil, which blocks for ever, without an attempt.
func CallerGone(ctx context.Context) <-chan struct{} {
	if a, ok := FromContext(ctx); ok {
		return a.ctx.values.caller.Done()
	}
	return nil
}

// claimed takes over what the store says of the claim.
func (a *Attempt) claimed(reply *driver.Claimed) {
	r := &reply.Record
	a.fence, a.number, a.died, a.takeover = r.Fence, r.Attempt, r.Died, reply.Takeover
	a.steps.list, a.steps.version, a.claimedAt = r.Steps, r.StepsVersion, r.ClaimedAt
	if a.claim.RepeatableFor > 0 {
		a.keyed = r.RepeatableUntil
		if a.steps.anyBegun() { // then it may end sooner, with the step's own time
			a.keyed = r.CreatedAt.Add(a.claim.RepeatableFor)
		}
	}
}

// start makes the context, begins the heartbeat and lets duplicates know.
func (a *Attempt) start(caller context.Context) {
	a.ctx.attempt, a.ctx.values.caller = a, caller
	a.ctx.Context, a.cancel = context.WithCancelCause(&a.ctx.values)
	p := &a.op.policy
	a.mu.Lock()
	a.valid = a.begun.Add(p.Lease)
	a.nextBeat = a.begun.Add(p.Lease / 3)
	a.deadline = a.begun.Add(p.Timeout)
	if a.bypassed || a.inTx {
		a.valid, a.nextBeat = a.deadline.Add(time.Hour), a.deadline.Add(time.Hour)
	}
	a.timer = time.AfterFunc(time.Until(a.next()), a.tick)
	a.mu.Unlock()
	a.guard.flights.takeOff(a.flight, a)
}

// Context returns the context to run the work under.
func (a *Attempt) Context() context.Context { return &a.ctx }

// Op returns the attempt's operation.
func (a *Attempt) Op() *Op { return a.op }

// Number returns the attempt's number, from 1.
func (a *Attempt) Number() int { return a.number }

// Fence returns the attempt's fence: it is greater than that of every attempt before it.
func (a *Attempt) Fence() int64 { return a.fence }

// Takeover reports whether the attempt before this one died.
func (a *Attempt) Takeover() bool { return a.takeover }

// Bypassed reports whether the attempt runs unguarded, because the store was down and the operation is Open.
func (a *Attempt) Bypassed() bool { return a.bypassed }

// End is how the end of an attempt was taken.
type End struct {
	// Recorded is true when the outcome is in the store. False: it is written in the background, or the attempt was
	// bypassed, or it was superseded.
	Recorded bool
	// Superseded is true when another attempt claimed the key, or somebody resolved it, before this end. Decision then
	// is what a duplicate gets now.
	Superseded bool
	Decision   Decision
	ExpiresAt  time.Time
}

// Succeed ends the attempt with a result. It does not need ctx to be alive: recording is detached. A non-nil error is
// ErrAttemptEnded; that the store could not be reached is no error, see End.Recorded.
func (a *Attempt) Succeed(ctx context.Context, result Result) (End, error) {
	if result.Data == nil && !result.Tombstone {
		result.Data = []byte{}
	}
	return a.end(ctx, driver.Outcome{Status: driver.Success, Result: result}, false)
}

// Fail ends the attempt with a failure of the given kind. cause's text is kept, cut to driver.MaxError bytes; result
// is kept for a final failure only. A kind that does not exist is Unknown.
func (a *Attempt) Fail(ctx context.Context, kind driver.Failure, cause error, result Result) (End, error) {
	if kind == 0 || kind > driver.Unknown {
		kind = driver.Unknown
	}
	o := driver.Outcome{Status: driver.Fail, Failure: kind}
	if cause != nil {
		o.Error = cause.Error()
	}
	if why := a.openStepText(); kind == driver.Unknown && !strings.Contains(o.Error, why) {
		o.Error = strings.TrimSuffix(why+": "+o.Error, ": ") // a lost answer alone does not say whose it was
	}
	o.Error = cut(o.Error, driver.MaxError)
	if kind == driver.Final {
		o.Result = result
	}
	// Only who states that nothing happened speaks for a step that has begun.
	return a.end(ctx, o, kind == driver.Retryable && judgement(cause) == nil)
}

// Infer returns what err means under the operation's OnError policy. While a step has begun, has no result and may not be
// called again, nobody can tell that nothing happened, unless the work itself says so.
func (a *Attempt) Infer(err error) driver.Failure {
	if a.inTx {
		return inferInTx(&a.op.policy, err, a.Repeatable())
	}
	kind := infer(&a.op.policy, err, a.Repeatable())
	if _, open := a.OpenStep(); open && kind == driver.Retryable && judgement(err) == nil {
		return driver.Unknown
	}
	return kind
}

// Repeatable reports whether running the work again would be safe if the attempt died now: by the operation's manifest, and
// by how far the steps are.
func (a *Attempt) Repeatable() bool {
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	l := a.op.policy.onLapse(a.steps.list, a.keyed)
	return l.repeat && (l.until.IsZero() || a.storeNow().Before(l.until))
}

// OpenStep returns a step that has begun, has no result and may not be called again: what it did is not known.
func (a *Attempt) OpenStep() (name string, open bool) {
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	for i := range a.steps.list {
		if s := &a.steps.list[i]; s.State == driver.StepBegun && !a.mayCallAgain(s) {
			return s.Name, true
		}
	}
	return "", false
}

// openStepText says that a step is open; empty: none is.
func (a *Attempt) openStepText() string {
	if name, open := a.OpenStep(); open {
		return "step " + name + " has begun and has no result"
	}
	return ""
}

// mayCallAgain reports whether a step that has begun may be called once more.
func (a *Attempt) mayCallAgain(s *driver.Step) bool {
	within, ok := a.op.policy.again(s.Name)
	return ok && (within == 0 || a.storeNow().Before(s.BegunAt.Add(within)))
}

// storeNow is the time of the store's clock, or a little later.
func (a *Attempt) storeNow() time.Time { return a.claimedAt.Add(time.Since(a.begun)) }

// cut shortens text to n bytes at the start of a rune, and replaces what a text column does not take: what is not
// UTF-8, and NUL.
func cut(text string, n int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > n {
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	return text
}
