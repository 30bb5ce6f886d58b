package onceward

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/onceward/onceward/driver"
)

// Do runs fn at most once for the call's key and gives every duplicate its first result.
//
// fn runs in the caller's goroutine. Its context keeps the caller's values but not its cancellation, so a caller that
// hangs up neither cancels the work nor loses the record; it is cancelled when the claim is lost or the timeout is
// over. The value that Do returns has been through the codec on the first run too, so that a lossy type shows on the
// first day.
//
// Errors, by errors.Is:
//   - fn's own error, when it means that nothing happened: a retry runs again;
//   - *FinalError, when the answer is no: duplicates get the same;
//   - ErrUnknown, wrapping fn's error, when nobody can tell;
//   - ErrInFlight, ErrMismatch, ErrDuplicate, ErrSuperseded and the errors of Guard.Begin: fn was not run, or
//     another attempt took over;
//   - ErrResultNotKept: the work is done; with it comes the value on the first run, and none on a replay.
//
// A panic or Goexit of fn passes through, after its outcome was recorded as unknown (retryable where running it again is safe).
func Do[T any](ctx context.Context, op *Op, call Call, fn func(context.Context) (T, error)) (T, error) {
	var g *Guard
	if op != nil {
		g = op.guard
	}
	return DoOn(ctx, g, op, call, fn)
}

// DoOn is Do on a guard that Guard.On made. It is for packages that bring transactions; programs use theirs.
func DoOn[T any](ctx context.Context, g *Guard, op *Op, call Call, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if call.Info != nil {
		*call.Info = Info{}
	}
	if op == nil || op.guard == nil || g == nil || fn == nil {
		return zero, errors.New("onceward: Do needs an operation that a guard defined, and a function")
	}
	if err := op.checkType(reflect.TypeFor[T]()); err != nil {
		return zero, err
	}
	d, err := g.Begin(ctx, op, call)
	if err != nil {
		return zero, err
	}
	switch d.Kind {
	case KindRun:
		return run(ctx, d.Attempt, call.Info, fn)
	case KindReplay:
		return decode[T](op.policy.Codec, d.Result)
	}
	return zero, d.Err()
}

func run[T any](ctx context.Context, a *Attempt, info *Info, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	ended := false
	defer func() {
		if !ended { // a panic or Goexit, which goes on: recovering would lose its value and stack
			kind := driver.Unknown
			if a.inTx || a.Repeatable() {
				kind = driver.Retryable
			}
			end, _ := a.Fail(ctx, kind, errors.New("the work panicked or left by Goexit"), Result{})
			end.inform(info)
		}
	}()
	codec := a.op.policy.Codec
	v, err := fn(a.Context())
	if err != nil {
		end, err := runFailed(ctx, a, err)
		ended = true
		end.inform(info)
		if end.Superseded && end.Decision.Kind == KindReplay {
			return decode[T](codec, end.Decision.Result)
		}
		return zero, err
	}
	result, encodeErr := encode(codec, v)
	end, endErr := a.Succeed(ctx, result)
	ended = true
	end.inform(info)
	switch {
	case endErr != nil:
		return zero, endErr
	case end.Superseded:
		if end.Decision.Kind == KindReplay {
			return decode[T](codec, end.Decision.Result)
		}
		return zero, end.Decision.Err()
	case encodeErr != nil:
		return v, &Error{Code: CodeResultNotKept, Cause: encodeErr}
	}
	back, err := decode[T](codec, result)
	if err != nil {
		return v, &Error{Code: CodeResultNotKept, Detail: "it was stored and can't be read back", Cause: err}
	}
	return back, nil
}

// runFailed ends the attempt with err, and returns what the caller gets for it.
func runFailed(ctx context.Context, a *Attempt, err error) (End, error) {
	kind, detail := a.Infer(err), a.openStepText()
	end, endErr := a.Fail(ctx, kind, err, Result{})
	switch {
	case endErr != nil:
		return end, errors.Join(err, endErr)
	case end.Superseded:
		return end, fmt.Errorf("%w (this attempt: %w)", end.Decision.Err(), err)
	}
	switch kind {
	case driver.Final:
		return end, &FinalError{Text: cut(err.Error(), driver.MaxError), Cause: err}
	case driver.Unknown:
		return end, &Error{Code: CodeOutcomeUnknown, RetryAfter: unknownRetry, Detail: detail, Cause: err}
	}
	if judgement(err) != nil {
		err = &nested{err} // it speaks of this work, not of work around it
	}
	return end, err
}

func (e *End) inform(info *Info) {
	if info == nil {
		return
	}
	info.Recorded = e.Recorded
	info.ExpiresAt = e.ExpiresAt
	if e.Superseded {
		info.Kind, info.RetryAfter = e.Decision.Kind, e.Decision.RetryAfter
	}
}
