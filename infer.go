package onceward

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/onceward/onceward/driver"
)

// infer says what an error of the work means under the operation's policy, and by whether running it again is safe.
func infer(op *Operation, err error, repeatable bool) driver.Failure {
	if j := judgement(err); j != nil {
		return j.failure
	}
	var final *FinalError
	if errors.As(err, &final) {
		return driver.Final
	}
	if errors.Is(err, ErrUnknown) && !repeatable {
		return driver.Unknown // a nested guarded call that cannot tell
	}
	switch {
	case op.OnError == KeepFailure:
		return driver.Final
	case repeatable:
		return driver.Retryable
	case op.OnError == Strict, BrokenConversation(err):
		return driver.Unknown
	}
	return driver.Retryable
}

// inferInTx is infer where everything that the work did is rolled back with its transaction.
func inferInTx(op *Operation, err error, repeatable bool) driver.Failure {
	var final *FinalError
	switch j := judgement(err); {
	case j != nil:
		return j.failure
	case errors.As(err, &final):
		return driver.Final
	case errors.Is(err, ErrUnknown) && !repeatable:
		return driver.Unknown // a nested guarded call that cannot tell is not rolled back
	case op.OnError == KeepFailure:
		return driver.Final
	}
	return driver.Retryable
}

// judgement finds what the work itself has stated about its error. What a nested guarded call was told about its own work
// says nothing about this one.
func judgement(err error) *judged {
	switch e := err.(type) { //nolint:errorlint // this is the walk
	case *judged:
		return e
	case *nested, *Error, *FinalError, nil:
		return nil
	case interface{ Unwrap() error }:
		return judgement(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if j := judgement(one); j != nil {
				return j
			}
		}
	}
	return nil
}

// nested hides from judgement what stands behind it, and from nobody else.
type nested struct{ cause error }

func (n *nested) Error() string { return n.cause.Error() }
func (n *nested) Unwrap() error { return n.cause }

// BrokenConversation reports whether err says that an answer was lost rather than given: a deadline, a cancellation, a
// timeout, a connection that was reset or cut, in HTTP/1 and 2, gRPC, PostgreSQL and MySQL. Such an error is no evidence
// that nothing happened. A connection that could not be made is: nothing was sent.
//
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
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	var conn *net.OpError
	var name *net.DNSError
	if errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &name) || errors.As(err, &conn) && conn.Op == "dial" {
		return false
	}
	var call *url.Error // what an HTTP client says of a call without an answer
	if conn != nil || errors.As(err, &call) && call.Op != "parse" {
		return true
	}
	return err != nil && lostText(err.Error())
}

// lostText knows the errors that have no type to ask for without importing their packages.
func lostText(text string) bool {
	for _, lost := range [...]string{
		"invalid connection",                                                           // go-sql-driver/mysql
		"conn closed", "server closed the connection", "SQLSTATE 57P01", "SQLSTATE 08", // PostgreSQL: shut down, connection exceptions
		"client connection lost", "stream error:", "GOAWAY", // HTTP/2
		"rpc error: code = Canceled", "rpc error: code = Unknown", "rpc error: code = DeadlineExceeded",
		"rpc error: code = Internal", "rpc error: code = Unavailable", "rpc error: code = DataLoss",
	} {
		if strings.Contains(text, lost) {
			return true
		}
	}
	return false
}
