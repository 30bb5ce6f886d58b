package driver

import (
	"encoding/hex"
	"time"

	"github.com/onceward/onceward/fingerprint"
)

// Status is the state of a record. The zero value is no status: a record never has it.
type Status uint8

const (
	Processing Status = iota + 1 // an attempt holds the claim
	Success                      // the result is stored
	Fail                         // see Failure
)

// Failure tells the kinds of Fail apart. The zero value stands beside Processing and Success.
type Failure uint8

const (
	Retryable Failure = iota + 1 // ended, nothing to keep; claimable
	Final                        // the work answered no; stored
	Unknown                      // died with effects not known safe; never expires until resolved
)

// OnLapse says what becomes of an attempt whose lease lapsed.
type OnLapse uint8

const (
	LapseUnknown OnLapse = iota // zero value: nobody may run it again by itself
	LapseRepeat                 // repeating is safe: a later claim takes over
)

// Owner is 128 random bits that name one attempt. The zero value is nobody.
type Owner [16]byte

// IsZero reports whether nobody owns the record.
func (o Owner) IsZero() bool { return o == Owner{} }

// StoreID is the random id that a store got with its first migration, to tell two databases apart.
type StoreID [16]byte

// String returns the id in hex, as the meta table has it.
func (id StoreID) String() string { return hex.EncodeToString(id[:]) }

// Result is what a finished attempt left for duplicates.
type Result struct {
	Codec     string // name of the codec that wrote Data
	Meta      []byte // small metadata of the front door (an HTTP status and headers)
	Data      []byte // nil means that none is stored; empty is a result of no bytes
	Tombstone bool   // the work is done, its result was too large or could not be kept
}

// Record is what is stored for (scope, operation, key). A zero time means none.
type Record struct {
	ID        ID
	Scope     Scope
	Operation string
	Key       string // as sent; can be a secret, never log it

	Status      Status
	Failure     Failure
	Fingerprint fingerprint.Sum

	Attempt     int // number of the current or last attempt, from 1
	Died        int // attempts that died (lapsed), of MaxAttempts
	MaxAttempts int
	Fence       int64 // grows with every claim of the key, never goes back
	Owner       Owner

	Lease           time.Duration
	LeaseUntil      time.Time // zero while Processing never means lapsed
	DeadlineAt      time.Time // when the attempt's own timeout ends
	OnLapse         OnLapse
	RepeatableUntil time.Time // zero: LapseRepeat holds without end
	Retention       time.Duration

	Result       Result
	Request      []byte // optional
	Error        string // text of the failure
	Resolution   string // who settled an unknown by hand, and why; empty when the attempt itself finished
	Steps        []Step // of the work, kept from attempt to attempt; nil: none
	StepsVersion int64  // grows with every write of Steps

	CreatedAt   time.Time // of the first attempt's claim
	ClaimedAt   time.Time // of the current or last attempt's claim
	UpdatedAt   time.Time
	CompletedAt time.Time
	ExpiresAt   time.Time // zero while Processing or unknown
}

// Finished reports whether the record may expire: Success, Fail final, Fail retryable.
func (r *Record) Finished() bool {
	return r.Status == Success || r.Status == Fail && !r.Unclear()
}

// Unclear reports whether nobody can tell what an attempt did.
func (r *Record) Unclear() bool { return r.Status == Fail && r.Failure == Unknown }

// Final reports whether the record holds a first result that duplicates get: Success or Fail final.
func (r *Record) Final() bool {
	return r.Status == Success || r.Status == Fail && r.Failure == Final
}

// String returns the status as the tables, the metrics and the console write it.
func (s Status) String() string {
	switch s {
	case Processing:
		return "PROCESSING"
	case Success:
		return "SUCCESS"
	case Fail:
		return "FAIL"
	}
	return ""
}

// ParseStatus is the inverse of String; ok is false for any other text.
func ParseStatus(text string) (s Status, ok bool) {
	for s = Processing; s <= Fail; s++ {
		if s.String() == text {
			return s, true
		}
	}
	return 0, false
}

// String returns the failure as tables write it; empty for none.
func (f Failure) String() string {
	switch f {
	case Retryable:
		return "RETRYABLE"
	case Final:
		return "FINAL"
	case Unknown:
		return "UNKNOWN"
	}
	return ""
}

// ParseFailure is the inverse of String; the empty text is no failure.
func ParseFailure(text string) (f Failure, ok bool) {
	for f = 0; f <= Unknown; f++ {
		if f.String() == text {
			return f, true
		}
	}
	return 0, false
}

// String returns the policy as tables write it.
func (o OnLapse) String() string {
	if o == LapseRepeat {
		return "REPEAT"
	}
	return "UNKNOWN"
}

// ParseOnLapse is the inverse of String. Any other text is the safe one, LapseUnknown, with ok false.
func ParseOnLapse(text string) (o OnLapse, ok bool) {
	if text == "REPEAT" {
		return LapseRepeat, true
	}
	return LapseUnknown, text == "UNKNOWN"
}
