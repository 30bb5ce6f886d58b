package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onceward/onceward/fingerprint"
)

// Store keeps records. Every call is one atomic decision that is durable, as far as the store promises durability,
// before it returns. Calls may come from any number of goroutines and processes. A store keeps copies of the bytes that it
// is given, and the bytes that it returns are only for reading, since others may have been given the same.
//
// An error other than those named here means that the call may or may not have taken effect; the same call may be
// made again, and then answers as if it had been made once.
type Store interface {
	// Claim asks for the right to run. It changes the record only as state.Claim says.
	// Errors: ErrStoreFull, ErrTooLong, ErrDamaged, ErrLocked; nothing was written with any of them.
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// Renew extends an unlapsed lease held by (owner, fence) and never shortens it. Errors: ErrLeaseLost.
	Renew(ctx context.Context, r Renewal) error

	// Finish writes an attempt's end, as state.Finish says: accepted as long as nobody claimed or resolved since,
	// lease over or not. A missing row is inserted as finished. Errors: ErrTooLong.
	Finish(ctx context.Context, f Finish) (Finished, error)

	// Settle ends what no attempt will end: a lapsed attempt, or an unknown outcome that somebody resolved.
	// Errors: ErrNotFound, ErrTooLong.
	Settle(ctx context.Context, s Settlement) (Settled, error)

	// Get returns the record as stored, expired or not. Errors: ErrNotFound.
	Get(ctx context.Context, id ID) (Snapshot, error)
}

// Sentinel errors of a store.
var (
	ErrNotFound  = errors.New("onceward: no such record")
	ErrLeaseLost = errors.New("onceward: lease lost: it lapsed, or another attempt claimed the key")
	ErrDamaged   = errors.New("onceward: damaged record: a row holds what Onceward never writes, somebody else changed it")
	ErrStoreFull = errors.New("onceward: store full: it is at its limit and nothing has expired")
)

// Errors of claims beside transactions, see TxStore.
var (
	ErrLocked        = errors.New("onceward: another transaction has claimed the key and has not ended")
	ErrOtherDatabase = errors.New("onceward: the transaction is of another database than the store: record and work would not be committed together")
	ErrConflict      = errors.New("onceward: the transaction lost against another one: roll it back and begin anew")
)

// Verdict is what a claim found.
type Verdict uint8

const (
	GotClaim     Verdict = iota + 1 // the caller may run
	InFlight                        // another attempt holds the claim
	Done                            // Success: replay the result
	Refused                         // Fail final: replay the failure
	OutcomeOpen                     // Fail unknown
	Mismatch                        // another fingerprint under the same key
	OtherVersion                    // the stored fingerprint is of another version: nothing was changed or compared
)

// Claim is the request to run one attempt.
type Claim struct {
	ID          ID
	Scope       Scope
	Operation   string
	Key         string
	Fingerprint fingerprint.Sum
	Owner       Owner // fresh per attempt, the same when an uncertain claim is made again

	Lease         time.Duration
	Timeout       time.Duration // DeadlineAt is the claim plus this
	Retention     time.Duration
	MaxAttempts   int
	OnLapse       OnLapse
	RepeatableFor time.Duration // zero: without end; counted from the first attempt's claim, see state.Claim
	Request       []byte
}

// Check returns ErrTooLong, with what was too long, when the claim exceeds the limits of a store.
func (c *Claim) Check() error {
	if c.fits() {
		return nil
	}
	return checkText(c.Scope, c.Operation, c.Key, "", "")
}

// fits is what Check asks of nearly every claim: without making the list of what could be wrong.
func (c *Claim) fits() bool {
	return len(c.Scope.Namespace) <= MaxScopePart && len(c.Scope.Tenant) <= MaxScopePart && len(c.Scope.Caller) <= MaxScopePart &&
		len(c.Operation) <= MaxOperation && len(c.Key) <= MaxKey
}

// Claimed answers a claim.
type Claimed struct {
	Verdict  Verdict
	Record   Record    // as it stands after the call
	Now      time.Time // the store's clock
	Store    StoreID
	Takeover bool // GotClaim after an attempt that died
}

// Renewal asks for a longer lease.
type Renewal struct {
	ID    ID
	Owner Owner
	Fence int64
	Lease time.Duration
}

// Outcome is how an attempt ended.
type Outcome struct {
	Status  Status // Success or Fail
	Failure Failure
	Result  Result
	Error   string
}

// Same reports whether two outcomes are equal to a duplicate: same status and failure, same bytes.
func (o *Outcome) Same(r *Record) bool {
	return o.Status == r.Status && o.Failure == r.Failure && o.Error == r.Error &&
		o.Result.Codec == r.Result.Codec && o.Result.Tombstone == r.Result.Tombstone &&
		string(o.Result.Data) == string(r.Result.Data) && string(o.Result.Meta) == string(r.Result.Meta)
}

// Finish is the end of the attempt that Claim asked for.
type Finish struct {
	Claim   Claim // what was claimed: identity, owner, and what an insert of a missing row needs
	Fence   int64
	Attempt int
	Died    int
	Outcome Outcome
	// KeepBegun states, of a retryable end, that calls of begun steps may have happened all the same: the attempt keeps its
	// owner, as after a lapse, and the next one is told of them.
	KeepBegun bool
}

// Owner is who holds the record after the finish.
func (f *Finish) Owner() Owner {
	if f.Outcome.Failure == Retryable && !f.KeepBegun {
		return Owner{}
	}
	return f.Claim.Owner
}

// valid reports whether a record can end so.
func (o *Outcome) valid() bool {
	return o.Status == Success && o.Failure == 0 || o.Status == Fail && o.Failure >= Retryable && o.Failure <= Unknown
}

var errSettledSteps = errors.New("onceward: a settlement tells of steps only with a retryable outcome")

var errOutcome = errors.New("onceward: an outcome is Success without a Failure, or Fail with one")

// Check is Claim.Check with the error text. An outcome that no record can have is an error too.
func (f *Finish) Check() error {
	if !f.Outcome.valid() {
		return errOutcome
	}
	if f.Claim.fits() && len(f.Outcome.Error) <= MaxError {
		return nil
	}
	return checkText(f.Claim.Scope, f.Claim.Operation, f.Claim.Key, f.Outcome.Error, "")
}

// Finished answers a finish.
type Finished struct {
	Applied bool // this outcome stands, written now or before
	// Record is as it stands after the call; when not Applied, it is what superseded this outcome. Of an Applied one a
	// store need not read what the finish left alone: CreatedAt, ClaimedAt, LeaseUntil, DeadlineAt, RepeatableUntil, Steps and Request may
	// be missing, and Died and the policies may be as Finish has them.
	Record Record
	Now    time.Time
}

// Settlement ends a record without its attempt. The zero Outcome asks to settle a lapse: a Processing record whose
// lease and grace are over becomes retryable or unknown by its stored OnLapse. A set Outcome resolves an unknown.
type Settlement struct {
	ID         ID
	Fence      int64   // the record is changed only while it still has this fence
	Outcome    Outcome // zero: a lapse
	Resolution string  // who and why, with an Outcome: see ResolutionBy
	Owner      Owner   // fresh random bits that replace the owner, with an Outcome
	Steps      []Step  // take the place of the record's, with a retryable Outcome; nil: they stay as they are
}

// ResolutionBy is the text of a settlement: who and why, and as much as there is room for of what r says itself.
func ResolutionBy(who, why string, r *Record) string {
	text := "by " + who + ": " + why
	if r.Error != "" && len(text) < MaxError {
		text += "; before: " + r.Error
	}
	return strings.ToValidUTF8(text[:min(len(text), MaxError)], "")
}

// Lapse reports whether a lapse is to be settled.
func (s *Settlement) Lapse() bool { return s.Outcome.Status == 0 }

// Check is Claim.Check for the texts of a settlement. An outcome that no record can have, or that settles nothing, is an
// error too.
func (s *Settlement) Check() error {
	if !s.Lapse() && (!s.Outcome.valid() || s.Outcome.Failure == Unknown) {
		return errOutcome
	}
	if s.Steps != nil && s.Outcome.Failure != Retryable {
		return errSettledSteps
	}
	if err := checkSteps(s.Steps); err != nil {
		return err
	}
	return checkText(Scope{}, "", "", s.Outcome.Error, s.Resolution)
}

// Settled answers a settlement.
type Settled struct {
	Applied bool
	Record  Record
	Now     time.Time
}

// Snapshot is a record and the store's clock when it was read.
type Snapshot struct {
	Record Record
	Now    time.Time
}

func checkText(s Scope, operation, key, errText, resolution string) error {
	for _, part := range [...]struct {
		name, text string
		limit      int
	}{
		{"namespace", s.Namespace, MaxScopePart}, {"tenant", s.Tenant, MaxScopePart}, {"caller", s.Caller, MaxScopePart},
		{"operation", operation, MaxOperation}, {"key", key, MaxKey}, {"error text", errText, MaxError},
		{"resolution", resolution, MaxError},
	} {
		if len(part.text) > part.limit {
			return fmt.Errorf("%w: %s has %d bytes, at most %d are kept", ErrTooLong, part.name, len(part.text), part.limit)
		}
	}
	return nil
}
