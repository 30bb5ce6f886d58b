package onceward

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
)

// Resolver asks the outside, a provider's query interface or our own tables, what an attempt did whose outcome is unknown. It
// is asked no earlier than the attempt's timeout plus a grace, because until then a late original may still arrive, and again
// later while it answers StillUnknown. An error, a panic included, says nothing either: a provider that can't be reached is
// never taken for one that has not seen the call. It must be safe for concurrent use.
type Resolver func(ctx context.Context, q Question) (Answer, error)

// Question is what a Resolver is asked.
type Question struct {
	Operation string
	Scope     Scope
	Key       key.Key
	Step      string    // whose result is missing; empty: the whole work
	StepKey   key.Key   // that its call carried; zero with an empty Step
	Attempt   int       // that called last
	Begun     time.Time // by the store's clock: of the step's first call, or of the last attempt's claim
	Error     string    // why it is unknown
}

// Answer is what a Resolver found. The zero value is StillUnknown.
type Answer struct {
	state answerState
	value any
	text  string
}

type answerState uint8

const (
	stillUnknown answerState = iota
	happened
	didNotHappen
	answeredNo
)

// Happened states that the step or the work took effect. value is what it would have returned: duplicates and later attempts
// get it, through the operation's codec. A Result is stored as it is.
func Happened(value any) Answer { return Answer{state: happened, value: value} }

// DidNotHappen states that it did not take effect, and no longer can. The key is free again. When a late original may still
// arrive, the answer is StillUnknown.
func DidNotHappen() Answer { return Answer{state: didNotHappen} }

// AnsweredNo states that the other side answered no: text is kept as the final failure.
func AnsweredNo(text string) Answer { return Answer{state: answeredNo, text: text} }

// AnsweredNoWith is AnsweredNo of a front door that keeps the whole answer: duplicates get result. It is about the whole work.
func AnsweredNoWith(text string, result Result) Answer {
	return Answer{state: answeredNo, text: text, value: result}
}

// StillUnknown states that the other side can't tell, or not yet.
func StillUnknown() Answer { return Answer{} }

// String returns the word of events and metrics.
func (a Answer) String() string {
	return [...]string{"still_unknown", "happened", "did_not_happen", "answered_no"}[a.state]
}

// Resolve asks the operation's resolvers about a record whose outcome is unknown, and records what they know. asked is false
// where there is nothing to ask: the outcome is not unknown any more, the operation is not defined here or has no resolver
// for it, or it is too early. An error leaves the record as it is.
//
// Where every step without a result has a Resolve of its own and the rest of the manifest may be run again, those are asked:
// the next attempt goes on from what they know. Otherwise Operation.Resolve is asked about the whole work.
func (g *Guard) Resolve(ctx context.Context, snap driver.Snapshot) (asked, settled bool, err error) {
	g.mu.Lock()
	op := g.ops[snap.Record.Operation]
	g.mu.Unlock()
	if op == nil || !op.mayAsk(&snap) {
		return false, false, nil
	}
	snap, err = timed(ctx, g, "get", op.policy.Name, func(ctx context.Context) (driver.Snapshot, error) { return g.store.Get(ctx, snap.Record.ID) })
	if errors.Is(err, driver.ErrNotFound) || err == nil && !op.mayAsk(&snap) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	i := inquiry{op: op, snap: &snap}
	if i.key, err = key.Parse(snap.Record.Key); err != nil {
		return false, false, fmt.Errorf("onceward: resolve: the key of a record of operation %q: %w", op.policy.Name, err)
	}
	st, err := i.steps(ctx)
	if err == nil && st == nil {
		st, err = i.whole(ctx)
	}
	if err != nil || st == nil {
		return i.asked, false, err
	}
	reply, err := timed(ctx, g, "settle", op.policy.Name, func(ctx context.Context) (driver.Settled, error) { return g.store.Settle(ctx, *st) })
	if err == nil && reply.Applied {
		g.emit(Event{Kind: EventResolved, Operation: op.policy.Name, Key: i.key, Attempt: snap.Record.Attempt, Outcome: i.answer.String()})
	}
	return true, err == nil && reply.Applied, err
}

// mayAsk reports whether there is somebody to ask about a record, and it is time.
func (op *Op) mayAsk(snap *driver.Snapshot) bool {
	r := &snap.Record
	return r.Unclear() && (op.policy.Resolve != nil || op.policy.Effects.asks()) &&
		!snap.Now.Before(r.DeadlineAt.Add(r.Lease/3))
}

func (all Effects) asks() bool {
	return slices.ContainsFunc(all, func(e Effect) bool { return e.Resolve != nil })
}

// inquiry asks about one record.
type inquiry struct {
	op     *Op
	snap   *driver.Snapshot
	key    key.Key
	asked  bool
	answer Answer // the last
}

// steps asks the steps that have no result. Nil: they can't settle it.
func (i *inquiry) steps(ctx context.Context) (*driver.Settlement, error) {
	r, p := &i.snap.Record, &i.op.policy
	var known []driver.Step
	var open []*driver.Step
	for n := range r.Steps {
		s := &r.Steps[n]
		if s.State != driver.StepBegun {
			known = append(known, *s)
			continue
		}
		if e := p.Effects.find(s.Name); e == nil || e.Resolve == nil {
			return nil, nil
		}
		open = append(open, s)
	}
	// What is asked must be all that stands in the way.
	var keyed time.Time
	if d := p.Effects.keyedFor(); d > 0 {
		keyed = r.CreatedAt.Add(d)
	}
	if l := p.onLapse(known, keyed); len(open) == 0 || !l.repeat || !l.until.IsZero() && !i.snap.Now.Before(l.until) {
		return nil, nil
	}
	for _, s := range open {
		stepKey, err := stepKey(r.ID, s.Name)
		if err != nil {
			return nil, err
		}
		a, err := i.ask(ctx, p.Effects.find(s.Name).Resolve, Question{Step: s.Name, StepKey: stepKey, Attempt: s.Attempt, Begun: s.BegunAt})
		if err != nil || a.state == stillUnknown {
			return nil, err
		}
		step := *s
		switch a.state {
		case happened:
			step.State = driver.StepDone
			if step.Result, err = a.result(p.Codec); err != nil {
				return nil, err
			}
			known = append(known, step)
		case answeredNo:
			step.State, step.Error = driver.StepRefused, cut(a.text, driver.MaxError)
			known = append(known, step)
		case didNotHappen, stillUnknown:
		}
	}
	st := i.settlement(driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "every step without a result was asked about"})
	if st.Steps = known; known == nil {
		st.Steps = []driver.Step{}
	}
	return st, nil
}

// whole asks about the whole work. Nil: nobody knows.
func (i *inquiry) whole(ctx context.Context) (*driver.Settlement, error) {
	r, p := &i.snap.Record, &i.op.policy
	if p.Resolve == nil || i.asked {
		return nil, nil
	}
	a, err := i.ask(ctx, p.Resolve, Question{Attempt: r.Attempt, Begun: r.ClaimedAt})
	if err != nil {
		return nil, err
	}
	switch a.state {
	case happened:
		result, err := a.result(p.Codec)
		return i.settlement(driver.Outcome{Status: driver.Success, Result: result}), err
	case answeredNo:
		o := driver.Outcome{Status: driver.Fail, Failure: driver.Final, Error: cut(a.text, driver.MaxError)}
		if kept, ok := a.value.(Result); ok {
			o.Result = kept
		}
		return i.settlement(o), nil
	case didNotHappen:
		return i.settlement(driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "it did not happen"}), nil
	case stillUnknown:
	}
	return nil, nil
}

// ask puts one question. A panic of the resolver is an error of it.
func (i *inquiry) ask(ctx context.Context, resolve Resolver, q Question) (a Answer, err error) {
	r := &i.snap.Record
	q.Operation, q.Scope, q.Key, q.Error = r.Operation, r.Scope, i.key, r.Error
	i.asked = true
	about := "the work"
	if q.Step != "" {
		about = "step " + q.Step
	}
	defer func() {
		if p := recover(); p != nil {
			a, err = Answer{}, fmt.Errorf("onceward: the resolver of operation %q panicked when it was asked about %s: %v", r.Operation, about, p)
		}
	}()
	if a, err = resolve(ctx, q); err != nil {
		return Answer{}, fmt.Errorf("onceward: the resolver of operation %q was asked about %s: %w", r.Operation, about, err)
	}
	i.answer = a
	return a, nil
}

// result is what an answer leaves for duplicates, or for later attempts.
func (a *Answer) result(c Codec) (Result, error) {
	r, ok := a.value.(Result)
	if !ok {
		var err error
		if r, err = encodeAny(c, a.value); err != nil {
			return Result{}, fmt.Errorf("onceward: a resolver's answer can't be stored: %w", err)
		}
	}
	if r.Data == nil && !r.Tombstone {
		r.Data = []byte{}
	}
	return r, nil
}

func (i *inquiry) settlement(o driver.Outcome) *driver.Settlement {
	r := &i.snap.Record
	st := &driver.Settlement{ID: r.ID, Fence: r.Fence, Outcome: o, Resolution: driver.ResolutionBy("resolver", "asked: "+i.answer.String(), r)}
	_, _ = rand.Read(st.Owner[:]) // never fails, by its contract
	return st
}
