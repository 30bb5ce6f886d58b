package onceward

import (
	"fmt"
	"slices"
	"time"

	"github.com/onceward/onceward/driver"
)

// Effects is an operation's manifest 副作用清单: all that its work causes outside itself, each with how it is kept to once.
// What is left out of it is not kept to once by anybody. Empty: nothing is declared, and a dead attempt is not run again
// unless the operation is Repeatable.
type Effects []Effect

// Effect is one line of a manifest.
type Effect struct {
	// Name is that of its Step or StepKey: 1 to 64 of a-z A-Z 0-9 . _ -, first a letter or digit.
	Name string

	// Way is how the effect is kept to once. It has no default.
	Way Way

	// HonouredFor is how long the other side answers a key that it has seen before without doing the work again, counted
	// from the first call. ByKey: zero means 24 h. ByStep: zero means that it does not know keys, so that a step that was
	// begun and has no result is never called again. Of other ways it must be zero.
	HonouredFor time.Duration

	// Bearable states that the effect may happen twice (a reminder, a cache that is warmed). Then no attempt is held up for
	// its sake. The zero value is the safe one: it can't be borne.
	Bearable bool

	// Resolve asks the other side what became of a step of this name that has no result, see Operation.Resolve. ByStep only.
	Resolve Resolver
}

// Way is how an effect is kept to once. The zero value is none: an effect needs one.
type Way uint8

// The ways.
const (
	// BySameTx is a write in the transaction that commits the record: of oncesql.Do, or of the oncesql.Step of its name.
	BySameTx Way = iota + 1
	// ByKey is a call with the key that StepKey derives, to somebody who does one key's work once.
	ByKey
	// ByOutbox is a message that commits with the business's rows and is delivered by a relay.
	ByOutbox
	// ByStep is a Step: its intent is written before the call, and its result after it.
	ByStep
	// Natural is what comes to the same when it is done again: a value that is set, not added to.
	Natural
)

// String returns the way as manifests print it; empty for none.
func (w Way) String() string {
	if w > Natural {
		w = 0
	}
	return [...]string{"", "same transaction", "same key", "outbox", "step", "natural"}[w]
}

// DefaultHonouredFor is how long a key is honoured by the other side of a ByKey effect that does not say.
const DefaultHonouredFor = 24 * time.Hour

// find returns the effect of a name, or nil.
func (all Effects) find(name string) *Effect {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// bearable reports whether everything may happen twice, a naturally repeatable effect included.
func (all Effects) bearable() bool {
	for i := range all {
		if !all[i].Bearable && all[i].Way != Natural {
			return false
		}
	}
	return len(all) > 0
}

// keyedFor is for how long the calls by key may be made again, from the first one on; zero: without end.
func (all Effects) keyedFor() (d time.Duration) {
	for i := range all {
		if e := &all[i]; e.Way == ByKey && !e.Bearable && (d == 0 || e.HonouredFor < d) {
			d = e.HonouredFor
		}
	}
	return d
}

// check fills in defaults, and tells bad what is wrong.
func (all Effects) check(o *Operation, bad func(format string, args ...any)) Effects {
	out := make(Effects, 0, len(all))
	for _, e := range all {
		switch {
		case !operationName.MatchString(e.Name):
			bad("effect %q: the name must be 1 to 64 of a-z A-Z 0-9 . _ -, first a letter or digit", e.Name)
		case out.find(e.Name) != nil:
			bad("effect %q is on the manifest twice", e.Name)
		}
		if e.Way == 0 || e.Way > Natural {
			bad("effect %q needs a way: say how it is kept to once (BySameTx, ByKey, ByOutbox, ByStep, Natural)", e.Name)
		}
		if e.Way == ByKey && e.HonouredFor == 0 {
			e.HonouredFor = DefaultHonouredFor
		}
		keyed := e.Way == ByKey || e.Way == ByStep
		// An attempt and its lease may last that long; a key that is forgotten before is of no use to the next one.
		least := o.Timeout + o.Lease + o.Lease/3
		switch {
		case !keyed && e.HonouredFor != 0:
			bad("effect %q: HonouredFor is for calls that carry a key, ByKey and ByStep", e.Name)
		case keyed && e.HonouredFor != 0 && e.HonouredFor <= least:
			bad("effect %q: keys are honoured for %v, and an attempt may be running for %v before it is known to be dead (timeout, lease and grace): no attempt could be run again in time", e.Name, e.HonouredFor, least)
		case e.Way == BySameTx && e.Bearable:
			bad("effect %q: what commits with the record never happens twice, so there is nothing to bear", e.Name)
		case e.Resolve != nil && e.Way != ByStep:
			bad("effect %q: Resolve is for steps; Operation.Resolve asks about the whole work", e.Name)
		}
		out = append(out, e)
	}
	return out
}

// again says whether a step that was begun and has no result may be called again, and for how long from its first call on;
// zero: without end.
func (o *Operation) again(name string) (within time.Duration, ok bool) {
	if len(o.Effects) == 0 {
		return 0, o.Repeatable
	}
	e := o.Effects.find(name)
	switch {
	case e == nil:
		return 0, false
	case e.Bearable || e.Way == Natural:
		return 0, true
	case e.Way == ByKey || e.Way == ByStep:
		return e.HonouredFor, e.HonouredFor > 0
	}
	return 0, false // it was to be done in a transaction, and was not
}

// declares returns ErrUndeclared where steps are held against the manifest and it has none of that name and ways.
func (o *Operation) declares(name string, ways ...Way) error {
	if !o.StrictSteps {
		return nil
	}
	e := o.Effects.find(name)
	if e == nil {
		return fmt.Errorf("%w (%q)", ErrUndeclared, name)
	}
	if !slices.Contains(ways, e.Way) {
		return fmt.Errorf("%w (%q is there by %v)", ErrUndeclared, name, e.Way)
	}
	return nil
}

// lapse is what becomes of an attempt that dies now, and why.
type lapse struct {
	repeat bool
	until  time.Time // by the store's clock; zero: without end
	why    string
}

// onLapse computes the lapse of an attempt by its manifest and by how far its steps are. keyed is until when calls by key
// may be made again; zero: without end.
func (o *Operation) onLapse(steps []driver.Step, keyed time.Time) lapse {
	l := lapse{repeat: o.Repeatable || len(o.Effects) > 0, until: keyed, why: "every effect is kept to once when it is repeated"}
	switch {
	case o.Repeatable:
		l.why = "the operation is declared repeatable"
	case !l.repeat:
		l.why = "the operation declares no effects, so repeating it is not known to be safe"
	}
	for i := range steps {
		s := &steps[i]
		if s.State != driver.StepBegun {
			continue
		}
		within, ok := o.again(s.Name)
		if !ok {
			return lapse{why: fmt.Sprintf("step %s has begun and has no result", s.Name)}
		}
		if end := s.BegunAt.Add(within); l.repeat && within > 0 && (l.until.IsZero() || end.Before(l.until)) {
			l.until = end
			l.why = fmt.Sprintf("the other side of step %s honours its key for %v from the first call", s.Name, within)
		}
	}
	return l
}
