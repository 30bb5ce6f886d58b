package onceward

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/onceward/onceward/driver"
)

// infer says what an error of the work means under the operation's policy.
func infer(op *Operation, err error) driver.Failure {
	var j *judged
	if errors.As(err, &j) {
		return j.failure
	}
	var final *FinalError
	if errors.As(err, &final) {
		return driver.Final
	}
	if errors.Is(err, ErrUnknown) && !op.Repeatable {
		return driver.Unknown // a nested guarded call that cannot tell
	}
	switch {
	case op.OnError == KeepFailure:
		return driver.Final
	case op.Repeatable:
		return driver.Retryable
	case op.OnError == Strict, BrokenConversation(err):
		return driver.Unknown
	}
	return driver.Retryable
}

// BrokenConversation reports whether err says that an answer was lost rather than given: a deadline, a
// cancellation, a timeout, a connection that was reset or cut. Such an error is no evidence that nothing happened.
// An error that was formatted with %v instead of %w hides its class.
func BrokenConversation(err error) bool {
	for _, lost := range [...]error{
		context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded,
		io.ErrUnexpectedEOF, io.EOF, io.ErrClosedPipe, net.ErrClosed, sqldriver.ErrBadConn,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
