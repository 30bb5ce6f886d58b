package oncehttp

import (
	"net/http"

	"github.com/onceward/onceward"
)

// StatusOf returns the HTTP status that answers a code. It is 0 for result_not_kept, which has the first status, and
// for a code that does not exist.
func StatusOf(c onceward.Code) int {
	switch c {
	case onceward.CodeKeyMissing, onceward.CodeKeyInvalid, onceward.CodeScopeMissing:
		return http.StatusBadRequest
	case onceward.CodeInFlight, onceward.CodeSuperseded, onceward.CodeOutcomeUnknown, onceward.CodeDuplicate:
		return http.StatusConflict
	case onceward.CodeKeyExpired:
		return http.StatusPreconditionFailed
	case onceward.CodeBodyTooLarge:
		return http.StatusRequestEntityTooLarge
	case onceward.CodeMismatch:
		return http.StatusUnprocessableEntity
	case onceward.CodeTooMany:
		return http.StatusTooManyRequests
	case onceward.CodeStoreUnavailable, onceward.CodeStoreFull, onceward.CodeUpstreamUnreachable:
		return http.StatusServiceUnavailable
	case onceward.CodeCorruptRecord:
		return http.StatusInternalServerError
	}
	return 0
}
