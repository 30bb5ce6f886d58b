package oncehttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/onceward/onceward"
)

// Response headers of this package.
const (
	// HeaderStatus is executed, replayed, in_flight, mismatch, unknown, unrecorded, bypassed, ignored (a method that is not
	// guarded) or none: nothing is kept, because no key came or because the answer leaves it free.
	HeaderStatus   = "Idempotency-Status"
	HeaderReplayed = "Idempotent-Replayed" // true on a replay
	HeaderExpires  = "Idempotency-Expires" // when the first answer is forgotten, as an HTTP date
	HeaderOutcome  = "Onceward-Outcome"    // from the handler to us, stripped: done, final, not-done, unknown
	HeaderReason   = "Onceward-Reason"     // likewise: the record's error text
)

// Problem is the body of an answer that is not a result (RFC 9457).
type Problem struct {
	Type         string         `json:"type"`
	Title        string         `json:"title"`
	Status       int            `json:"status"`
	Detail       string         `json:"detail,omitempty"`
	Code         onceward.Code  `json:"code,omitempty"` // none for about:blank, which the status says all of
	Retry        onceward.Retry `json:"retry"`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
}

// NewProblem describes a code. retryAfter is a hint, and detail says what was wrong with this request; both may be zero. A
// code that has no status of its own (result_not_kept) needs one before it is written.
func NewProblem(code onceward.Code, retryAfter time.Duration, detail string) Problem {
	return Problem{
		Type: "urn:onceward:problem:" + string(code), Title: code.Text(), Status: StatusOf(code), Detail: detail,
		Code: code, Retry: code.Retry(), RetryAfterMS: retryAfter.Milliseconds(),
	}
}

// Write sends the problem.
func (p Problem) Write(w http.ResponseWriter) {
	body, _ := json.Marshal(p) // strings and numbers only
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	if p.RetryAfterMS > 0 {
		// Rounded down, so that it never points past the end of a lease, but at least a second.
		h.Set("Retry-After", strconv.FormatInt(max(p.RetryAfterMS/1000, 1), 10))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
