package onceward

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"
)

// Operation names a kind of work and its policies. The zero value of every field but Name is a working default.
type Operation struct {
	// Name is the operation's name in records, metrics and the console: 1 to 64 of a-z A-Z 0-9 . _ -, first a letter
	// or digit. Renaming an operation forgets its keys.
	Name string

	// Retention is how long a result is kept and replayed, counted from the finish. Zero: 24 h.
	Retention time.Duration

	// Lease is how long a claim holds without a heartbeat, which comes every third of it. The work's context is
	// cancelled a sixth before an unrenewed lease ends. Zero: 30 s; at least 10 ms.
	Lease time.Duration

	// Timeout bounds one attempt; then its context is cancelled and the heartbeat stops. Zero: 15 min.
	Timeout time.Duration

	// MaxAttempts bounds how many attempts may die (their lease lapsed) before the outcome is unknown. Answers that
	// say nothing happened do not count. Zero: 5.
	MaxAttempts int

	// Effects is the manifest: all that the work causes outside itself, and how each is kept to once. By it a dead attempt
	// is run again where that is safe, and its outcome becomes unknown where it is not. Empty: nothing is declared.
	Effects Effects

	// StrictSteps makes a Step, StepIn or StepKey whose name is not on the manifest, or there in another way, an error
	// before anything is done: ErrUndeclared. It needs Effects.
	StrictSteps bool

	// Repeatable states that running the work again is safe whatever a dead attempt did, in place of Effects. Without either
	// a dead attempt is never taken over: its outcome becomes unknown.
	Repeatable bool

	// Resolve asks the outside what an attempt did whose outcome is unknown. It is called by Guard.Resolve, which the janitor
	// calls. Nil: unknown outcomes wait for a person.
	Resolve Resolver

	// RetriedFor is how long senders may come again with the same key: a client's retries, a broker's redelivery, a provider's
	// callbacks. A Retention that is shorter is an error of Define. Zero: nothing is stated, and nothing checked.
	RetriedFor time.Duration

	OnDuplicate OnDuplicate // what a finished key answers
	OnInFlight  OnInFlight  // what a duplicate of a running attempt gets
	OnError     OnError     // what an error of the work means
	OnStoreDown OnStoreDown // what happens when the store does not answer

	// Tx makes it an operation of the transaction kind: record and work are one database transaction, by oncesql.Do or
	// Join. An attempt has no lease and no heartbeat: when it dies, the database takes everything back, so that a plain
	// error and a broken conversation both mean that nothing happened.
	Tx bool
	// LockWait is how long a claim of the transaction kind waits for another transaction that has claimed the key; then
	// the key is in flight. Zero: 1 s.
	LockWait time.Duration
	// Reruns is how often work of the transaction kind is run again, in a transaction of its own, after the database chose
	// it as a victim (a deadlock, a failed serialization). Zero: never, the caller is told to come again.
	Reruns int

	// Savepoint keeps the claim of the transaction kind while what the work wrote is rolled back, for a Final or Unknown end.
	// Without it such an end is recorded by a new claim, and somebody else may run the work in between: fine where the work
	// touches nothing but its transaction. It costs a round trip, and is implied by KeepFailure.
	Savepoint bool

	// Codec turns results into bytes. Nil: JSON.
	Codec Codec
}

// OnDuplicate says what a finished key answers.
type OnDuplicate uint8

const (
	ReturnFirst OnDuplicate = iota // the first result
	Reject                         // ErrDuplicate
)

// OnInFlight says what a duplicate of a running attempt gets. The zero value is Conflict at once.
type OnInFlight struct{ wait time.Duration }

// Conflict answers ErrInFlight at once.
func Conflict() OnInFlight { return OnInFlight{} }

// Wait waits up to limit for the attempt to end, then answers ErrInFlight. At most 64 callers wait for one key and
// 1,024 in one process; those above it get ErrInFlight at once.
func Wait(limit time.Duration) OnInFlight { return OnInFlight{wait: limit} }

// OnError says what an error of the work means.
type OnError uint8

const (
	// Infer takes a plain error for "it failed, nothing to keep", and a broken conversation for unknown.
	Infer OnError = iota
	// KeepFailure takes every error for final.
	KeepFailure
	// Strict takes a plain error for unknown, unless running the work again is safe.
	Strict
)

// OnStoreDown says what happens when the store does not answer.
type OnStoreDown uint8

const (
	// Closed refuses with ErrStoreUnavailable.
	Closed OnStoreDown = iota
	// Open runs the work unguarded, marked in Info and metered; only for operations that are Repeatable, or whose every
	// effect can be borne twice.
	Open
)

// Defaults of an operation.
const (
	DefaultRetention   = 24 * time.Hour
	DefaultLease       = 30 * time.Second
	DefaultTimeout     = 15 * time.Minute
	DefaultMaxAttempts = 5
	DefaultLockWait    = time.Second
)

const minLease = 10 * time.Millisecond

var operationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Op is a defined operation: validated, registered with its Guard, immutable. Safe for concurrent use.
type Op struct {
	guard  *Guard
	policy Operation
	types  sync.Map // reflect.Type → *error, of the types that Do has checked
}

// Name returns the operation's name.
func (op *Op) Name() string { return op.policy.Name }

// Policy returns the operation with its defaults filled in.
func (op *Op) Policy() Operation { return op.policy }

// Guard returns the guard that defined the operation.
func (op *Op) Guard() *Guard { return op.guard }

// withDefaults fills in defaults and returns all problems at once.
func (o Operation) withDefaults() (Operation, error) {
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = DefaultMaxAttempts
	}
	if o.Codec == nil {
		o.Codec = JSON{}
	}
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("onceward: operation %q: "+format, append([]any{o.Name}, args...)...))
	}
	if !operationName.MatchString(o.Name) {
		bad("the name must be 1 to 64 of a-z A-Z 0-9 . _ -, first a letter or digit")
	}
	if o.Retention < time.Millisecond {
		bad("retention %v: must be at least 1ms (zero means %v)", o.Retention, DefaultRetention)
	}
	if o.Lease < minLease {
		bad("lease %v: must be at least %v (zero means %v)", o.Lease, minLease, DefaultLease)
	}
	if o.Timeout < time.Millisecond {
		bad("timeout %v: must be at least 1ms (zero means %v)", o.Timeout, DefaultTimeout)
	}
	if o.MaxAttempts < 1 {
		bad("max attempts %d: must be at least 1 (zero means %d)", o.MaxAttempts, DefaultMaxAttempts)
	}
	if o.OnInFlight.wait < 0 {
		bad("wait %v: must not be negative", o.OnInFlight.wait)
	}
	if !o.Tx && (o.LockWait != 0 || o.Reruns != 0 || o.Savepoint) {
		bad("LockWait, Reruns and Savepoint are of the transaction kind: set Tx")
	}
	if o.Tx && o.OnError == KeepFailure {
		o.Savepoint = true
	}
	if o.Tx && o.OnStoreDown == Open {
		bad("OnStoreDown Open: work in a transaction can't run without its database")
	}
	if o.LockWait < 0 || o.Reruns < 0 {
		bad("LockWait %v and Reruns %d must not be negative", o.LockWait, o.Reruns)
	}
	if o.Tx && o.LockWait == 0 {
		o.LockWait = DefaultLockWait
	}
	if o.OnDuplicate > Reject || o.OnError > Strict || o.OnStoreDown > Open {
		bad("a policy has a value that does not exist")
	}
	if o.Repeatable && len(o.Effects) > 0 {
		bad("Repeatable and Effects say two things about the same: the manifest says which effects may happen twice")
	}
	o.Effects = o.Effects.check(&o, bad)
	if o.StrictSteps && len(o.Effects) == 0 {
		bad("StrictSteps needs a manifest to hold steps against: set Effects")
	}
	if o.OnStoreDown == Open && !o.Repeatable && !o.Effects.bearable() {
		bad("OnStoreDown Open runs work unguarded, so it must be Repeatable, or every effect of its manifest must be Bearable or Natural")
	}
	if o.RetriedFor < 0 || o.Retention < o.RetriedFor {
		bad("retention %v: keys come again for %v (RetriedFor), and one that comes after its record has expired runs the work again", o.Retention, o.RetriedFor)
	}
	return o, errors.Join(problems...)
}
