package onceward

import (
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/key"
)

// Scope says whose key it is. See driver.Scope.
type Scope = driver.Scope

// Result is what a finished attempt left for duplicates. See driver.Result.
type Result = driver.Result

// Call is one call of an operation.
type Call struct {
	// Scope is the authenticated caller. Zero only under Options.SingleTenant.
	Scope Scope
	// Key names the client's intent. Required.
	Key key.Key
	// Request is fingerprinted, so that one key used for two requests is a mismatch: nil, bytes, or anything that
	// marshals to JSON (member order does not matter, numbers are exact).
	Request any
	// Fingerprint stands in for Request when it is set.
	Fingerprint fingerprint.Sum
	// Info, when set, is filled in before the call returns.
	Info *Info
}

// Info tells how a call was answered.
type Info struct {
	Kind     Kind // zero when the call was refused before a decision
	Attempt  int
	Takeover bool // the attempt before died
	// Recorded is about work that this call ran. False: its outcome is not in the store, because the claim is kept and the
	// write goes on in the background, or because it ran unguarded or was superseded. Where nothing ran nothing is left to
	// write, and it is true, but for a call that was refused before a decision.
	Recorded   bool
	Bypassed   bool      // run unguarded: the store was down and the operation is Open
	ExpiresAt  time.Time // by the store's clock; zero when nothing is kept
	RetryAfter time.Duration
}
