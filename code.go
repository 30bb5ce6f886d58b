package onceward

// Code is the stable name of an answer that is not a result. Every transport maps the same codes, see [Codes].
type Code string

// The codes. Their meaning for a client is in Retry.
const (
	CodeKeyMissing          Code = "key_missing"
	CodeKeyInvalid          Code = "key_invalid"
	CodeScopeMissing        Code = "scope_missing"
	CodeInFlight            Code = "in_flight"
	CodeSuperseded          Code = "superseded"
	CodeOutcomeUnknown      Code = "outcome_unknown"
	CodeDuplicate           Code = "duplicate"
	CodeKeyExpired          Code = "key_expired"
	CodeBodyTooLarge        Code = "body_too_large"
	CodeMismatch            Code = "mismatch"
	CodeTooMany             Code = "too_many"
	CodeStoreUnavailable    Code = "store_unavailable"
	CodeStoreFull           Code = "store_full"
	CodeUpstreamUnreachable Code = "upstream_unreachable"
	CodeCorruptRecord       Code = "corrupt_record"
	CodeResultNotKept       Code = "result_not_kept"
)

// Retry tells a client what to do with an answer.
type Retry string

// What a client may do.
const (
	RetryStop    Retry = "stop"     // do not send it again
	RetrySameKey Retry = "same_key" // send it again under the same key, after the hint
	RetryNewKey  Retry = "new_key"  // the key belongs to another request: a new intent needs a new key
)

// Codes returns all codes, in the order of the documentation. The slice is the caller's.
func Codes() []Code {
	return []Code{
		CodeKeyMissing, CodeKeyInvalid, CodeScopeMissing, CodeInFlight, CodeSuperseded, CodeOutcomeUnknown,
		CodeDuplicate, CodeKeyExpired, CodeBodyTooLarge, CodeMismatch, CodeTooMany, CodeStoreUnavailable,
		CodeStoreFull, CodeUpstreamUnreachable, CodeCorruptRecord, CodeResultNotKept,
	}
}

// Retry returns what a client may do with this answer. An unknown outcome is never a reason for a new key.
func (c Code) Retry() Retry {
	switch c {
	case CodeInFlight, CodeSuperseded, CodeOutcomeUnknown, CodeTooMany, CodeStoreUnavailable, CodeStoreFull, CodeUpstreamUnreachable:
		return RetrySameKey
	case CodeMismatch:
		return RetryNewKey
	}
	return RetryStop
}

// Exit returns the exit status of a command that ends with this code.
func (c Code) Exit() int {
	switch c {
	case CodeKeyMissing, CodeKeyInvalid, CodeScopeMissing, CodeBodyTooLarge:
		return 2
	case CodeInFlight, CodeSuperseded, CodeDuplicate, CodeTooMany:
		return 4
	case CodeKeyExpired, CodeMismatch:
		return 5
	case CodeStoreUnavailable, CodeStoreFull, CodeUpstreamUnreachable:
		return 6
	case CodeOutcomeUnknown:
		return 9
	case CodeResultNotKept:
		return 0
	}
	return 1
}

// Text returns the answer in a sentence, with what to do next.
func (c Code) Text() string {
	switch c {
	case CodeKeyMissing:
		return "an idempotency key is required: send one, the same on every retry of one intent"
	case CodeKeyInvalid:
		return "the idempotency key is not valid: 1 to 255 bytes of printable ASCII, no blank at either end"
	case CodeScopeMissing:
		return "the caller is not known: a key means something only inside its scope"
	case CodeInFlight:
		return "the first attempt is still running: try again with the same key"
	case CodeSuperseded:
		return "another attempt took over: ask again with the same key"
	case CodeOutcomeUnknown:
		return "an attempt ended and nobody can tell what it did: ask again with the same key, never with a new one"
	case CodeDuplicate:
		return "this key was used already"
	case CodeKeyExpired:
		return "this key is older than the time it is remembered"
	case CodeBodyTooLarge:
		return "the request body is larger than a guarded request may be"
	case CodeMismatch:
		return "this key belongs to another request: a new intent needs a new key"
	case CodeTooMany:
		return "too many requests at once: try again with the same key"
	case CodeStoreUnavailable:
		return "the idempotency store does not answer, so nothing was run: try again with the same key"
	case CodeStoreFull:
		return "the idempotency store is full, so nothing was run: try again with the same key"
	case CodeUpstreamUnreachable:
		return "the service could not be reached, so nothing was run: try again with the same key"
	case CodeCorruptRecord:
		return "the stored record is damaged: it needs a person"
	case CodeResultNotKept:
		return "the work is done; its result was not kept"
	}
	return string(c)
}
