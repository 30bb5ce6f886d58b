package onceward

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/key"
)

// intent is a checked call.
type intent struct {
	op    *Op
	scope Scope
	key   key.Key
	id    driver.ID
	sum   fingerprint.Sum
	until time.Time // how long this caller waits in flight; zero: not at all
}

// Begin makes one store call and gets one decision; duplicates in this process of an attempt that runs here cost
// none. A Decision of KindRun carries an Attempt that must be ended by Succeed or Fail.
//
// Errors: ErrKeyMissing, ErrKeyInvalid, ErrScopeMissing, ErrStoreUnavailable, ErrStoreFull, ErrCorruptRecord,
// ErrClosed, or the context's cause when it ended first; with any of them nothing was run.
func (g *Guard) Begin(ctx context.Context, op *Op, call Call) (Decision, error) {
	start := time.Now()
	d, err := g.begin(ctx, op, &call)
	if err == nil {
		d.inform(call.Info)
	} else if call.Info != nil {
		*call.Info = Info{}
	}
	if g.opts.Observer != nil {
		e := Event{Kind: EventDecision, Key: call.Key, Outcome: d.Kind.String(), Duration: time.Since(start), Attempt: d.Number, Err: err}
		if op != nil {
			e.Operation = op.policy.Name
		}
		if err != nil {
			if e.Outcome = string(CodeOf(err)); e.Outcome == "" {
				e.Outcome = "cancelled"
			}
		}
		g.emit(e)
	}
	return d, err
}

func (g *Guard) begin(ctx context.Context, op *Op, call *Call) (Decision, error) {
	in, err := g.check(ctx, op, call)
	if err != nil {
		return Decision{}, err
	}
	for {
		f, leads := g.board(&in)
		var d Decision
		var again bool
		if leads {
			d, again, err = g.lead(ctx, &in, f)
		} else {
			d, again, err = g.follow(ctx, &in, f)
		}
		if !again {
			return d, err
		}
	}
}

func (g *Guard) check(ctx context.Context, op *Op, call *Call) (in intent, err error) {
	if op == nil || g.core == nil || op.guard.core != g.core {
		return in, errors.New("onceward: Begin needs an operation that this guard defined")
	}
	if err := g.checkKind(ctx, op); err != nil {
		return in, err
	}
	if err := ctx.Err(); err != nil {
		return in, context.Cause(ctx) // a caller who is gone, or late, starts nothing
	}
	if call.Key.IsZero() {
		return in, ErrKeyMissing
	}
	if call.Scope.IsZero() && !g.opts.SingleTenant {
		return in, &Error{Code: CodeScopeMissing, Detail: "set Call.Scope from the authenticated caller, or Options.SingleTenant"}
	}
	text := call.Key.Reveal()
	probe := driver.Claim{Scope: call.Scope, Operation: op.policy.Name, Key: text}
	if err := probe.Check(); err != nil {
		return in, &Error{Code: CodeKeyInvalid, Cause: err}
	}
	in = intent{op: op, scope: call.Scope, key: call.Key, id: driver.Identify(call.Scope, op.policy.Name, text), sum: call.Fingerprint}
	if in.sum.IsZero() {
		if in.sum, err = fingerprint.Of(call.Request); err != nil {
			return in, fmt.Errorf("onceward: Call.Request of operation %q can't be fingerprinted: %w", op.policy.Name, err)
		}
	}
	// Inside the caller's own transaction there is nothing to wait for: another try would be in the same one.
	if w := max(op.policy.OnInFlight.wait, op.policy.LockWait); w > 0 && (g.bound == nil || g.bound.Commits) {
		in.until = time.Now().Add(w)
	}
	return in, nil
}

// lead claims in the store for everybody in this process who has the same key now.
func (g *Guard) lead(ctx context.Context, in *intent, f *flight) (d Decision, again bool, err error) {
	landed := false
	defer func() {
		if !landed { // a panic of the store: never leave followers behind
			g.flights.land(f, Decision{}, nil, false)
		}
	}()
	for wait := 50 * time.Millisecond; ; {
		d, err = g.claim(ctx, in, f)
		if err != nil || d.Kind == KindRun {
			break
		}
		left := time.Until(in.until)
		if d.Kind != KindInFlight || left <= 0 || !g.waiters.enter() {
			break
		}
		g.flights.elsewhere(f, time.Now().Add(d.RetryAfter))
		err = pause(ctx, min(left, wait), nil)
		g.waiters.leave()
		if err != nil {
			landed = true
			g.flights.land(f, Decision{}, nil, false) // nor here
			return Decision{}, false, err
		}
		wait = min(2*wait, time.Second)
	}
	landed = true
	if err == nil && d.Kind == KindRun {
		return d, false, nil // the attempt lands the flight
	}
	g.flights.land(f, d, err, err == nil || ctx.Err() == nil) // a leader who is gone does not fail its followers
	g.flights.retire(f)
	return d, false, err
}

// follow joins the flight of another caller of this process.
func (g *Guard) follow(ctx context.Context, in *intent, f *flight) (d Decision, again bool, err error) {
	for {
		left := time.Until(in.until)
		wait := left > 0 && g.waiters.enter()
		l := g.flights.look(f, in.sum, wait)
		if wait && (l.phase != running || l.changed == nil) {
			g.waiters.leave()
			wait = false
		}
		switch {
		case l.phase == over:
			if !l.share || !l.sameSum {
				return Decision{}, true, nil
			}
			if l.answer.Kind == KindInFlight && left > 0 {
				return Decision{}, true, nil // its leader's patience is over, mine is not
			}
			return l.answer, false, l.err
		case l.phase == claiming:
			select {
			case <-l.changed:
			case <-ctx.Done():
				return Decision{}, false, context.Cause(ctx)
			}
		case !l.sameSum:
			return Decision{Kind: KindMismatch}, false, nil
		case !wait:
			return Decision{Kind: KindInFlight, RetryAfter: l.hint}, false, nil
		default:
			err := pause(ctx, left, l.changed)
			g.flights.away(f)
			g.waiters.leave()
			if err != nil {
				return Decision{}, false, err
			}
		}
	}
}

// claim asks the store, and asks again under the same owner while it can't tell whether the claim was made: a lost
// reply is resolved by claiming again, never by reading "absent".
func (g *Guard) claim(ctx context.Context, in *intent, f *flight) (Decision, error) {
	if err := g.enter(); err != nil {
		return Decision{}, err
	}
	kept := false
	defer func() {
		if !kept {
			g.leave()
		}
	}()
	p := &in.op.policy
	c := driver.Claim{
		ID: in.id, Scope: in.scope, Operation: p.Name, Key: in.key.Reveal(), Fingerprint: in.sum,
		Lease: p.Lease, Timeout: p.Timeout, Retention: p.Retention, MaxAttempts: p.MaxAttempts,
	}
	if p.Repeatable || len(p.Effects) > 0 { // no step has begun that this attempt knows of
		c.OnLapse, c.RepeatableFor = driver.LapseRepeat, p.Effects.keyedFor()
	}
	_, _ = rand.Read(c.Owner[:]) // never fails, by its contract
	if g.bound != nil {
		d, err := g.claimBound(ctx, in, f, &c)
		kept = err == nil && d.Kind == KindRun
		return d, err
	}

	begun := time.Now() // before the claim is sent: the lease can only be longer than we think
	reply, err := g.claimUntilSure(ctx, &c)
	ours := reply.Record.Owner == c.Owner
	if err == nil && reply.Verdict != driver.GotClaim && !ours {
		return in.op.decide(reply.Verdict, &reply.Record, reply.Now)
	}
	a := &Attempt{guard: g, op: in.op, flight: f, key: in.key, claim: c, begun: begun, store: g.store}
	if err == nil {
		a.claimed(&reply)
		// The lease or the timeout may be over by now: a dead claim is given back, not run under.
		if late := time.Since(begun); late >= min(p.Lease-margin(p.Lease), p.Timeout) || reply.Verdict != driver.GotClaim {
			err = fmt.Errorf("the claim was answered after %v; the lease is %v, the timeout %v", late.Round(time.Millisecond), p.Lease, p.Timeout)
		}
	}
	switch {
	case err == nil:
		kept = true
		a.start(ctx)
		return Decision{Kind: KindRun, Attempt: a, Number: a.number}, nil
	case errors.Is(err, driver.ErrStoreFull):
		return Decision{}, &Error{Code: CodeStoreFull, RetryAfter: time.Second, Cause: err}
	case errors.Is(err, driver.ErrTooLong):
		return Decision{}, &Error{Code: CodeKeyInvalid, Cause: err}
	case errors.Is(err, driver.ErrLocked):
		return Decision{Kind: KindInFlight, RetryAfter: time.Second}, nil
	case errors.Is(err, driver.ErrDamaged):
		return Decision{}, &Error{Code: CodeCorruptRecord, Cause: err}
	}
	if p.OnStoreDown == Open && ctx.Err() == nil { // a caller who is gone has not shown that the store is down
		a.bypassed, a.number, a.begun = true, 1, time.Now()
		kept = true
		a.start(ctx)
		g.emit(Event{Kind: EventBypassed, Operation: p.Name, Key: a.key, Err: err})
		return Decision{Kind: KindRun, Attempt: a, Number: 1}, nil
	}
	kept = true
	g.giveBack(a)
	return Decision{}, &Error{Code: CodeStoreUnavailable, RetryAfter: time.Second, Cause: err}
}

func (g *Guard) claimUntilSure(ctx context.Context, c *driver.Claim) (reply driver.Claimed, err error) {
	// Detached: a caller that hangs up while the claim is under way must not leave a claim nobody knows of.
	detached := newBounded(ctx, g.opts.StoreTimeout)
	defer detached.cancel()
	for try := 0; ; try++ {
		reply, err = timed(detached, g, "claim", c.Operation, func(ctx context.Context) (driver.Claimed, error) {
			return g.store.Claim(ctx, *c)
		})
		if err == nil || errors.Is(err, driver.ErrStoreFull) || errors.Is(err, driver.ErrTooLong) || errors.Is(err, driver.ErrDamaged) || errors.Is(err, driver.ErrLocked) {
			return reply, err
		}
		if ctx.Err() != nil || detached.Err() != nil || pause(detached, backoff(try), nil) != nil {
			return reply, err
		}
	}
}

// margin is the part of a lease that is kept free: a heartbeat that has not come by then is too late.
func margin(lease time.Duration) time.Duration { return lease / 6 }

// backoff returns a jittered pause: 20 ms doubling to 1 s, at least half of it.
func backoff(try int) time.Duration {
	d := min(20*time.Millisecond<<min(try, 6), time.Second)
	return d/2 + mathrand.N(d/2)
}
