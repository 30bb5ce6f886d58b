package onceward

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
)

// Errors of steps: fn was not run.
var (
	ErrNoAttempt = errors.New("onceward: a step needs an attempt: call it inside Do, with the context that the work was given")
	// ErrUndeclared is of operations with StrictSteps.
	ErrUndeclared = errors.New("onceward: the operation's manifest does not have it so: put it on Operation.Effects, with the way in which it is kept to once")

	ErrStepTwice = errors.New("onceward: one attempt runs a step of one name once: give each its own name, such as the name of the effect and of its object")
)

// Step runs fn, a named part of the work in ctx, and remembers its result: a later attempt gets it without running fn again.
// Before fn runs, a write proves the claim, renews its lease, and says that the step has begun; after fn, a second one keeps
// its result. Call the other side with the key that StepKey derives.
//
// What fn's error means is asked of the operation's OnError, as for the work. Final: the answer no is remembered as a result
// is. Nothing happened: the next attempt runs fn again. Cannot tell, a panic and a Goexit included: the step has begun and has
// no result. Then a later attempt calls fn again where the manifest says that this is safe, because the other side honours
// keys (Effect.HonouredFor) or twice can be borne; elsewhere the outcome is unknown until it is resolved.
//
// Steps of different names may run in parallel. Names have 1 to 64 of a-z A-Z 0-9 . _ -, first a letter or digit.
//
// Errors, by errors.Is:
//   - fn's own error; a *FinalError when the answer is no, now or in an attempt before; ErrUnknown when nobody can tell;
//   - ErrNoAttempt, ErrStepTwice, ErrUndeclared, ErrInsideTx, or one about the name, the type or the store: fn was not run;
//   - ErrLeaseLost: another attempt has claimed the key or will; without a result of fn, it was not run;
//   - ErrStoreUnavailable: the store did not take the intent, and fn was not run;
//   - ErrResultNotKept: the step is done, its result could not be encoded; with it comes the value of fn on its first run.
//
// In an attempt that is bypassed fn runs and nothing is remembered.
func Step[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	s, err := openStep[T](ctx, name, fn == nil, ByStep, ByKey, Natural)
	if err != nil {
		return zero, err
	}
	if s.attempt.bypassed {
		return fn(ctx)
	}
	if s.remembered {
		return recall[T](s)
	}
	if err := s.begin(ctx); err != nil {
		return zero, err
	}
	v, err := fn(ctx)
	if err != nil {
		return zero, s.failed(ctx, err)
	}
	result, encodeErr := encode(s.attempt.op.policy.Codec, v)
	if err := s.end(ctx, driver.StepDone, result, ""); err != nil {
		return zero, err
	}
	return firstValue(s, v, result, encodeErr)
}

// StepKey returns the key for a call to others that the attempt in ctx makes under a name: the same on every attempt of the
// record, and another one for every record, operation, scope and name. Errors: ErrNoAttempt, ErrUndeclared, or one about the name.
func StepKey(ctx context.Context, name string) (key.Key, error) {
	a, ok := FromContext(ctx)
	if !ok {
		return key.Key{}, ErrNoAttempt
	}
	if !operationName.MatchString(name) {
		return key.Key{}, errStepName(name)
	}
	if err := a.op.policy.declares(name, ByKey, ByStep); err != nil {
		return key.Key{}, err
	}
	return stepKey(a.claim.ID, name)
}

func stepKey(id driver.ID, name string) (key.Key, error) {
	h := sha256.New()
	_, _ = h.Write([]byte("onceward step\x00"))
	_, _ = h.Write(id[:])
	_, _ = h.Write([]byte(name))
	return key.Parse(hex.EncodeToString(h.Sum(nil)[:16]))
}

// StepTx is a transaction that a step runs in, see StepIn.
type StepTx struct {
	// Begin opens it, and returns the store bound to it.
	Begin func(ctx context.Context) (driver.Store, error)
	// Commit ends it. An error leaves open whether it took effect.
	Commit func() error
	// Rollback ends it without a trace; it is called when it has ended already, too.
	Rollback func()
}

// StepIn is Step in a transaction: what fn writes and the step's result take effect together, or not at all, so that the step
// is never begun without a result. It is for packages that bring transactions; programs use theirs.
func StepIn[T any](ctx context.Context, name string, t StepTx, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	s, err := openStep[T](ctx, name, fn == nil, BySameTx)
	if err != nil {
		return zero, err
	}
	if s.remembered {
		return recall[T](s)
	}
	defer t.Rollback()
	store, err := t.Begin(ctx)
	if err != nil {
		s.forget()
		return zero, txError(err)
	}
	v, err := fn(context.WithValue(ctx, insideTx{}, s.attempt.guard.core))
	if err != nil {
		t.Rollback()
		kind := inferInTx(&s.attempt.op.policy, err, s.attempt.Repeatable())
		if kind == driver.Final && !s.attempt.bypassed {
			return zero, s.failed(ctx, err)
		}
		s.forget()
		if kind == driver.Unknown {
			return zero, Unknown(err)
		}
		return zero, Retryable(err)
	}
	result, encodeErr := encode(s.attempt.op.policy.Codec, v)
	if s.attempt.bypassed {
		err = t.Commit()
	} else {
		err = s.commit(ctx, store, t, result)
	}
	if err != nil {
		return zero, err
	}
	return firstValue(s, v, result, encodeErr)
}

// firstValue is what a step returns that has just been done: what a later attempt will get.
func firstValue[T any](s *openedStep, v T, result Result, encodeErr error) (T, error) {
	if encodeErr != nil {
		return v, &Error{Code: CodeResultNotKept, Cause: encodeErr}
	}
	back, err := decode[T](s.attempt.op.policy.Codec, result)
	if err != nil {
		return v, &Error{Code: CodeResultNotKept, Detail: "it was stored and can't be read back", Cause: err}
	}
	return back, nil
}

// steps are those of an attempt's record.
type steps struct {
	mu      sync.Mutex // held while they are written: a later write holds all that an earlier one does
	list    []driver.Step
	version int64           // of the last write that was sent
	taken   map[string]bool // names that this attempt has used
}

// openedStep is a step of an attempt that was not used before.
type openedStep struct {
	attempt    *Attempt
	store      driver.StepStore
	name       string
	remembered bool
	step       driver.Step // as it is remembered
}

func errStepName(name string) error {
	return fmt.Errorf("onceward: step %q: the name must be 1 to 64 of a-z A-Z 0-9 . _ -, first a letter or digit", name)
}

// openStep checks a step and takes its name.
func openStep[T any](ctx context.Context, name string, noWork bool, ways ...Way) (*openedStep, error) {
	a, ok := FromContext(ctx)
	switch inside, _ := ctx.Value(insideTx{}).(*core); {
	case !ok:
		return nil, ErrNoAttempt
	case inside == a.guard.core:
		return nil, ErrInsideTx
	case noWork:
		return nil, fmt.Errorf("onceward: step %q needs a function", name)
	case !operationName.MatchString(name):
		return nil, errStepName(name)
	}
	if err := a.op.policy.declares(name, ways...); err != nil {
		return nil, err
	}
	if err := a.op.checkType(reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	store, ok := a.store.(driver.StepStore)
	if !ok && !a.bypassed {
		return nil, fmt.Errorf("onceward: step %q: the store does not remember steps: %T is no driver.StepStore", name, a.store)
	}
	s := &openedStep{attempt: a, store: store, name: name}
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	if a.steps.taken[name] {
		return nil, fmt.Errorf("%w (%q)", ErrStepTwice, name)
	}
	if a.steps.taken == nil {
		a.steps.taken = map[string]bool{}
	}
	a.steps.taken[name] = true
	if i := a.steps.find(name); i >= 0 {
		s.step = a.steps.list[i]
		// Begun by an attempt before: where that is safe it is called again.
		s.remembered = s.step.State != driver.StepBegun || !a.mayCallAgain(&s.step)
	}
	return s, nil
}

func (s *steps) find(name string) int {
	return slices.IndexFunc(s.list, func(x driver.Step) bool { return x.Name == name })
}

// with returns the steps with one of them changed.
func (s *steps) with(step driver.Step) []driver.Step {
	list := slices.Clone(s.list)
	if i := s.find(step.Name); i >= 0 {
		list[i] = step
		return list
	}
	return append(list, step)
}

// anyBegun reports whether a step has begun and has no result.
func (s *steps) anyBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.list, func(x driver.Step) bool { return x.State == driver.StepBegun })
}

// recall is what a step gave to an attempt before.
func recall[T any](s *openedStep) (v T, err error) {
	switch s.step.State {
	case driver.StepDone:
		return decode[T](s.attempt.op.policy.Codec, s.step.Result)
	case driver.StepRefused:
		return v, &FinalError{Text: s.step.Error}
	}
	return v, &Error{Code: CodeOutcomeUnknown, RetryAfter: unknownRetry,
		Detail: fmt.Sprintf("step %s was begun by attempt %d and has no result: nobody can tell what it did", s.name, s.step.Attempt)}
}

// forget takes back that a step has begun: nothing happened. The next write tells the store, or the next attempt does not ask.
func (s *openedStep) forget() {
	all := &s.attempt.steps
	all.mu.Lock()
	defer all.mu.Unlock()
	if i := all.find(s.name); i >= 0 && all.list[i].State == driver.StepBegun {
		all.list = slices.Delete(slices.Clone(all.list), i, i+1)
	}
}

// progress is what is written of the attempt's steps, whose lock the caller holds.
func (s *openedStep) progress(list []driver.Step, intent bool) driver.Progress {
	a := s.attempt
	a.steps.version++
	p := driver.Progress{ID: a.claim.ID, Owner: a.claim.Owner, Fence: a.fence, Intent: intent, Lease: a.op.policy.Lease, Steps: list, Version: a.steps.version}
	l := a.op.policy.onLapse(list, a.keyed)
	if l.repeat && !l.until.IsZero() {
		p.RepeatableFor = l.until.Sub(a.storeNow())
		l.repeat = p.RepeatableFor > 0
	}
	if l.repeat {
		p.OnLapse = driver.LapseRepeat
	}
	return p
}

// write writes until the store has answered, the patience is over or ctx ends.
func (s *openedStep) write(ctx context.Context, p driver.Progress, patience time.Duration) error {
	detached := newBounded(ctx, patience)
	defer detached.cancel()
	a := s.attempt
	for try := 0; ; try++ {
		sent := time.Now()
		_, err := timed(detached, a.guard, "progress", a.op.policy.Name, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.store.Progress(ctx, p)
		})
		switch {
		case err == nil:
			a.renewed(sent)
			return nil
		case errors.Is(err, driver.ErrLeaseLost):
			a.leaseLost()
			return ErrLeaseLost
		case errors.Is(err, driver.ErrTooLong):
			return err
		case ctx.Err() != nil || detached.Err() != nil || pause(detached, backoff(try), nil) != nil:
			return err
		}
	}
}

// begin writes the intent.
func (s *openedStep) begin(ctx context.Context) error {
	a := s.attempt
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	step := driver.Step{Name: s.name, State: driver.StepBegun, Attempt: a.number, BegunAt: s.step.BegunAt}
	if step.BegunAt.IsZero() {
		step.BegunAt = a.storeNow().Truncate(time.Microsecond)
	}
	list := a.steps.with(step)
	if err := s.write(ctx, s.progress(list, true), a.guard.opts.StoreTimeout); err != nil {
		if errors.Is(err, ErrLeaseLost) {
			return err
		}
		return &Error{Code: CodeStoreUnavailable, RetryAfter: time.Second, Detail: "step " + s.name + " was not begun", Cause: err}
	}
	if ctx.Err() != nil { // the claim, or the time, was lost while the answer was on its way
		return context.Cause(ctx)
	}
	a.steps.list, s.step = list, step
	return nil
}

// end remembers a result. When the store does not take it in time it stays with the attempt: the next write brings it, and
// until then an attempt that dies has a step without a result, which is never taken for more than that.
func (s *openedStep) end(ctx context.Context, state driver.StepState, result Result, text string) error {
	a := s.attempt
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	step := s.step
	step.Name, step.State, step.Attempt, step.Result, step.Error = s.name, state, a.number, result, text
	a.steps.list = a.steps.with(step)
	err := s.write(context.WithoutCancel(ctx), s.progress(a.steps.list, false), a.guard.opts.FinishGrace)
	if errors.Is(err, ErrLeaseLost) {
		return err
	}
	if err != nil {
		a.guard.emit(Event{Kind: EventUnrecorded, Operation: a.op.policy.Name, Key: a.key, Attempt: a.number, Err: err})
	}
	return nil
}

// failed ends a step with the error of its function.
func (s *openedStep) failed(ctx context.Context, err error) error {
	switch infer(&s.attempt.op.policy, err, false) {
	case driver.Final:
		text := cut(err.Error(), driver.MaxError)
		if lost := s.end(ctx, driver.StepRefused, Result{}, text); lost != nil {
			return errors.Join(lost, err)
		}
		return &FinalError{Text: text, Cause: err}
	case driver.Unknown:
		if s.attempt.mayCallAgain(&s.step) {
			return &nested{err} // which is no word about the work: the next attempt finds out
		}
		return Unknown(err)
	}
	s.forget()
	return err
}

// commit writes the result beside what the transaction holds, and commits both.
func (s *openedStep) commit(ctx context.Context, store driver.Store, t StepTx, result Result) error {
	a := s.attempt
	bound, ok := store.(driver.StepStore)
	if !ok {
		return fmt.Errorf("onceward: step %q: the store does not remember steps in a transaction: %T is no driver.StepStore", s.name, store)
	}
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	step := driver.Step{Name: s.name, State: driver.StepDone, Attempt: a.number, BegunAt: a.storeNow().Truncate(time.Microsecond), Result: result}
	list := a.steps.with(step)
	sent := time.Now()
	_, err := timed(ctx, a.guard, "progress", a.op.policy.Name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, bound.Progress(ctx, s.progress(list, true))
	})
	switch {
	case errors.Is(err, driver.ErrLeaseLost):
		t.Rollback()
		a.leaseLost()
		return ErrLeaseLost
	case err != nil:
		t.Rollback()
		return txError(err)
	}
	if err = t.Commit(); err != nil {
		return s.landed(ctx, list, err)
	}
	a.steps.list = list
	a.renewed(sent)
	return nil
}

// landed finds out what became of a transaction whose COMMIT was answered with an error. A renewal waits for the row that the
// transaction has locked; what is read after it is what was committed.
func (s *openedStep) landed(ctx context.Context, list []driver.Step, cause error) error {
	a := s.attempt
	detached := newBounded(ctx, a.guard.opts.FinishGrace)
	defer detached.cancel()
	before := a.steps.list
	a.steps.list = a.steps.with(driver.Step{Name: s.name, State: driver.StepBegun, Attempt: a.number}) // until it is known
	for try := 0; ; try++ {
		err := a.store.Renew(detached, driver.Renewal{ID: a.claim.ID, Owner: a.claim.Owner, Fence: a.fence, Lease: a.op.policy.Lease})
		if errors.Is(err, driver.ErrLeaseLost) {
			a.leaseLost()
			return Unknown(errors.Join(ErrLeaseLost, cause))
		}
		var now driver.Snapshot
		if err == nil {
			now, err = a.store.Get(detached, a.claim.ID)
		}
		if err == nil && now.Record.Owner == a.claim.Owner && now.Record.Fence == a.fence {
			all := steps{list: now.Record.Steps}
			if i := all.find(s.name); i >= 0 && all.list[i].State == driver.StepDone {
				a.steps.list = list
				return nil
			}
			a.steps.list = before
			return Retryable(fmt.Errorf("onceward: step %s was rolled back: %w", s.name, cause))
		}
		if detached.Err() != nil || pause(detached, backoff(try), nil) != nil {
			return Unknown(fmt.Errorf("onceward: the reply to the COMMIT of step %s was lost: %w", s.name, errors.Join(cause, err)))
		}
	}
}
