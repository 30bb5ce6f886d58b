package onceward

import (
	"errors"
	"strings"
	"time"

	"github.com/onceward/onceward/driver"
)

// Error is an answer that is not a result. Compare with the sentinels by errors.Is, which compares codes.
type Error struct {
	Code       Code
	RetryAfter time.Duration // a hint, zero for none
	Detail     string        // what was wrong, for people; never holds a key
	Cause      error
}

// Sentinels, one for each code that this package returns.
var (
	ErrKeyMissing       = &Error{Code: CodeKeyMissing}
	ErrKeyInvalid       = &Error{Code: CodeKeyInvalid}
	ErrScopeMissing     = &Error{Code: CodeScopeMissing}
	ErrInFlight         = &Error{Code: CodeInFlight}
	ErrSuperseded       = &Error{Code: CodeSuperseded}
	ErrUnknown          = &Error{Code: CodeOutcomeUnknown}
	ErrDuplicate        = &Error{Code: CodeDuplicate}
	ErrKeyExpired       = &Error{Code: CodeKeyExpired}
	ErrMismatch         = &Error{Code: CodeMismatch}
	ErrTooMany          = &Error{Code: CodeTooMany}
	ErrStoreUnavailable = &Error{Code: CodeStoreUnavailable}
	ErrStoreFull        = &Error{Code: CodeStoreFull}
	ErrCorruptRecord    = &Error{Code: CodeCorruptRecord}
	ErrResultNotKept    = &Error{Code: CodeResultNotKept}
)

// Errors without a code: they are about this process, not about a key.
var (
	ErrLeaseLost = driver.ErrLeaseLost // cause of an attempt's cancelled context
	ErrClosed    = errors.New("onceward: the guard is closed")
	ErrInsideTx  = errors.New("onceward: a guarded call inside a transaction of the same store would wait for its own transaction: use oncesql.Join, or do it before or after")
	// ErrConflict: the database chose the transaction as a victim. Nothing happened in it; roll it back and begin anew.
	ErrConflict = driver.ErrConflict
	// ErrOtherDatabase: the transaction is of another database than the guard's store.
	ErrOtherDatabase = driver.ErrOtherDatabase
	ErrAttemptEnded  = errors.New("onceward: the attempt has already ended: call Succeed or Fail once")
)

// Error returns the code's sentence, the detail and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("onceward: ")
	b.WriteString(e.Code.Text())
	if e.Detail != "" {
		b.WriteString(" (" + e.Detail + ")")
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Is reports whether target is an *Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code of err, or the empty code.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// FinalError is the answer no, kept and given to every duplicate: the first caller's wraps the original error, a
// replayed one has its text.
type FinalError struct {
	Text  string
	Cause error // nil on a replay
}

// Error returns the text.
func (e *FinalError) Error() string { return e.Text }

// Unwrap returns the original error of the first run.
func (e *FinalError) Unwrap() error { return e.Cause }

// judged is an error whose meaning the work has stated.
type judged struct {
	failure driver.Failure
	cause   error
}

// Retryable states that nothing happened: the work may run again under the same key. Nil stays nil.
func Retryable(err error) error { return judge(driver.Retryable, err) }

// Final states that the answer is no: it is kept, and duplicates get it. Nil stays nil.
func Final(err error) error { return judge(driver.Final, err) }

// Unknown states that nobody can tell whether the work took effect. Nil stays nil.
func Unknown(err error) error { return judge(driver.Unknown, err) }

func judge(f driver.Failure, err error) error {
	if err == nil {
		return nil
	}
	return &judged{failure: f, cause: err}
}

func (j *judged) Error() string { return j.cause.Error() }
func (j *judged) Unwrap() error { return j.cause }
