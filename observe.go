package onceward

import (
	"context"
	"time"

	"github.com/onceward/onceward/key"
)

// Event is something worth counting or logging. Key prints only as a digest.
type Event struct {
	Kind      EventKind
	Operation string
	Key       key.Key
	Outcome   string        // EventDecision: the Kind's name or a code; EventFinish: status words; EventStore: the call; EventUnclaimed: a word or a code
	Duration  time.Duration // EventDecision: of Begin; EventFinish: of the attempt; EventStore: of the call
	Attempt   int
	Err       error
}

// EventKind is a closed set.
type EventKind uint8

const (
	EventDecision      EventKind = iota + 1 // Begin answered
	EventFinish                             // an attempt ended and the store knows
	EventStore                              // a store call returned
	EventLeaseLost                          // an attempt's context was cancelled: its claim is no longer valid here
	EventTimeout                            // an attempt's context was cancelled: its timeout is over
	EventUnrecorded                         // a result could not be written in time and goes on in the background
	EventGivenUp                            // a result will not be written: its record lapses
	EventContradiction                      // late truth differs from what a resolution said
	EventBypassed                           // work ran unguarded
	EventResolved                           // a resolver's answer was recorded; Outcome: happened, did_not_happen, answered_no
	EventUnclaimed                          // a front door passed a request on, or answered it, without Begin
)

// Observer is called with every event, from any goroutine, in line: it must be fast and must not call the Guard.
type Observer func(Event)

func (g *Guard) emit(e Event) {
	if g.opts.Observer != nil {
		g.opts.Observer(e)
	}
}

// Unclaimed tells the observer of a request that a front door passed on, or answered, without Begin, so that these are
// counted too. outcome is one of few words: none for no key, ignored for a method that is not guarded, body_cut for a
// request that did not come whole, or a code. why may be nil.
func (op *Op) Unclaimed(outcome string, why error) {
	op.guard.emit(Event{Kind: EventUnclaimed, Operation: op.policy.Name, Outcome: outcome, Err: why})
}

// timed makes a store call and reports it.
func timed[R any](ctx context.Context, g *Guard, name string, op string, call func(context.Context) (R, error)) (R, error) {
	if g.opts.Observer == nil {
		return call(ctx)
	}
	start := time.Now()
	reply, err := call(ctx)
	g.emit(Event{Kind: EventStore, Operation: op, Outcome: name, Duration: time.Since(start), Err: err})
	return reply, err
}
