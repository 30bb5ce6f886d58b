package driver

import (
	"context"
	"errors"
	"time"
)

// StepState is how far a step is. The zero value is no state.
type StepState uint8

const (
	StepBegun   StepState = iota + 1 // what it calls may or may not have happened
	StepDone                         // its result is stored
	StepRefused                      // it answered no; stored
)

// String returns the state as tables write it.
func (s StepState) String() string {
	switch s {
	case StepBegun:
		return "BEGUN"
	case StepDone:
		return "DONE"
	case StepRefused:
		return "REFUSED"
	}
	return ""
}

// ParseStepState is the inverse of String; ok is false for any other text.
func ParseStepState(text string) (s StepState, ok bool) {
	for s = StepBegun; s <= StepRefused; s++ {
		if s.String() == text {
			return s, true
		}
	}
	return 0, false
}

// Step is a named part of an attempt whose result is remembered by the attempts after it.
type Step struct {
	Name    string
	State   StepState
	Attempt int       // that called it last
	BegunAt time.Time // of its first call
	Result  Result    // of StepDone
	Error   string    // of StepRefused
}

// Progress writes how far an attempt is: all steps of its record, and what a lapse means from here on.
type Progress struct {
	ID    ID
	Owner Owner
	Fence int64
	// Intent states that something is about to be done on the strength of this write: it needs an unlapsed lease. Without it,
	// it is a result, late truth, taken as long as nobody claimed or resolved since.
	Intent bool
	Lease  time.Duration // an unlapsed lease is renewed by the same write
	Steps  []Step
	// Version is greater than that of every write before it, and the same when an uncertain write is made again: one that
	// comes late, from a connection that hung, changes nothing any more.
	Version       int64
	OnLapse       OnLapse
	RepeatableFor time.Duration // zero: without end; counted from this write
}

// StepStore is the optional power to remember steps. The store that TxStore.Bind returns has it where the store does.
type StepStore interface {
	// Progress takes the place of the record's steps, as state.Progress says. A later claim that runs the work again is
	// answered with them in Claimed.Record. Errors: ErrLeaseLost, also of a write that a later one
	// has overtaken; ErrTooLong.
	Progress(ctx context.Context, p Progress) error
}

var errStep = errors.New("onceward: a step needs a name and a state")

// Check returns an error when a step could not be read back as it is: ErrTooLong for its texts.
func (p *Progress) Check() error { return checkSteps(p.Steps) }

func checkSteps(all []Step) error {
	for i := range all {
		s := &all[i]
		if s.Name == "" || s.State.String() == "" {
			return errStep
		}
		if err := checkText(Scope{}, s.Name, "", s.Error, ""); err != nil {
			return err
		}
	}
	return nil
}
