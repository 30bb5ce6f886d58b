package onceward

import (
	"time"

	"github.com/onceward/onceward/driver"
)

// Kind is what Begin decided. The set is closed.
type Kind uint8

// The decisions.
const (
	KindRun           Kind = iota + 1 // claimed: run the work, then end Decision.Attempt
	KindReplay                        // the first result is in Decision.Result
	KindReplayFailure                 // the first answer was no: Decision.Failure, and Result when there is one
	KindInFlight                      // another attempt runs
	KindMismatch                      // the key belongs to another request
	KindUnknown                       // nobody can tell what an attempt did
	KindDuplicate                     // finished, and the operation rejects duplicates
	KindSuperseded                    // only from an attempt's end: another attempt took over and has not ended
)

// String returns the word that metrics and headers use.
func (k Kind) String() string {
	switch k {
	case KindRun:
		return "executed"
	case KindReplay:
		return "replayed"
	case KindReplayFailure:
		return "replayed_failure"
	case KindInFlight:
		return "in_flight"
	case KindMismatch:
		return "mismatch"
	case KindUnknown:
		return "unknown"
	case KindDuplicate:
		return "duplicate"
	case KindSuperseded:
		return "superseded"
	}
	return "none"
}

// Decision is the answer of Begin.
type Decision struct {
	Kind    Kind
	Attempt *Attempt // KindRun only

	Result  Result // KindReplay, KindReplayFailure
	Failure string // KindReplayFailure, KindUnknown: text

	Number     int           // of the record's attempt
	ExpiresAt  time.Time     // by the store's clock, of finished records
	RetryAfter time.Duration // KindInFlight, KindUnknown, KindSuperseded: a hint
}

// Err returns the sentinel error of a decision that has no result, and nil for KindRun and KindReplay. A replayed
// failure is a *FinalError.
func (d *Decision) Err() error {
	switch d.Kind {
	case KindReplayFailure:
		return &FinalError{Text: d.Failure}
	case KindInFlight:
		return &Error{Code: CodeInFlight, RetryAfter: d.RetryAfter}
	case KindMismatch:
		return ErrMismatch
	case KindUnknown:
		return &Error{Code: CodeOutcomeUnknown, RetryAfter: d.RetryAfter, Detail: d.Failure}
	case KindDuplicate:
		return ErrDuplicate
	case KindSuperseded:
		return &Error{Code: CodeSuperseded, RetryAfter: d.RetryAfter}
	}
	return nil
}

func (d *Decision) inform(info *Info) {
	if info == nil {
		return
	}
	*info = Info{Kind: d.Kind, Attempt: d.Number, Recorded: d.Kind != KindRun, ExpiresAt: d.ExpiresAt, RetryAfter: d.RetryAfter}
	if d.Attempt != nil {
		info.Takeover, info.Bypassed = d.Attempt.takeover, d.Attempt.bypassed
	}
}

// retryHint tells a duplicate to wait as long again as the attempt has run: most attempts are short, and an obedient
// client should not sit out a lease that is renewed. At least a second, at most what is left of the lease.
func retryHint(ran, left time.Duration) time.Duration { return max(min(ran, left), time.Second) }

// unknownRetry is the hint for an outcome that waits for a resolver or a person.
const unknownRetry = 30 * time.Second

// decide turns a stored record into the decision that a duplicate gets. It is not for a record that was claimed.
func (op *Op) decide(v driver.Verdict, r *driver.Record, now time.Time) (Decision, error) {
	d := Decision{Number: r.Attempt, ExpiresAt: r.ExpiresAt}
	switch v {
	case driver.InFlight:
		d.Kind, d.RetryAfter = KindInFlight, retryHint(now.Sub(r.ClaimedAt), r.LeaseUntil.Sub(now))
	case driver.Mismatch, driver.OtherVersion:
		// A fingerprint of another version cannot be compared yet: refusing is safe, running would not be.
		d = Decision{Kind: KindMismatch}
	case driver.OutcomeOpen:
		d.Kind, d.Failure, d.RetryAfter = KindUnknown, r.Error, unknownRetry
	case driver.Done, driver.Refused:
		if op.policy.OnDuplicate == Reject {
			d.Kind = KindDuplicate
			return d, nil
		}
		d.Kind, d.Result = KindReplay, r.Result
		if v == driver.Refused {
			d.Kind, d.Failure = KindReplayFailure, r.Error
		} else if r.Result.Data == nil && !r.Result.Tombstone {
			return d, &Error{Code: CodeCorruptRecord, Detail: "it says SUCCESS and holds no result"}
		}
	default:
		return d, &Error{Code: CodeCorruptRecord, Detail: "the store gave a verdict that does not exist"}
	}
	return d, nil
}

// verdictOf is what a duplicate finds in a record that an attempt or somebody else left.
func verdictOf(r *driver.Record) driver.Verdict {
	switch {
	case r.Status == driver.Success:
		return driver.Done
	case r.Status == driver.Fail && r.Failure == driver.Final:
		return driver.Refused
	case r.Unclear():
		return driver.OutcomeOpen
	}
	return driver.InFlight
}
