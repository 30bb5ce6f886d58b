package oncehttp

import (
	"fmt"
	"net/http"

	"github.com/onceward/onceward"
)

// codec names the results of this package.
const codec = "http"

// NewResult returns an answer in the form in which this package keeps it, for whoever ends an attempt or resolves an outcome
// in a handler's place. Headers that are not replayed are left out, as those of a handler are. The body is not copied.
//
// Errors: a status that is none of a final answer, a body where the status has none, headers of more than 32 KiB.
func NewResult(status int, header http.Header, body []byte) (onceward.Result, error) {
	switch {
	case status < 200 || status > 999:
		return onceward.Result{}, fmt.Errorf("oncehttp: status %d: a kept answer has 200 to 999", status)
	case len(body) > 0 && !statusHasBody(status):
		return onceward.Result{}, fmt.Errorf("oncehttp: status %d has no body, and %d bytes were given: leave them out", status, len(body))
	}
	meta := encodeMeta(nil, status, appendFields(nil, header), nil)
	if len(meta) > maxMeta {
		return onceward.Result{}, fmt.Errorf("oncehttp: headers of %d bytes: at most %d are kept", len(meta), maxMeta)
	}
	if body == nil {
		body = []byte{} // nil would be no result
	}
	return onceward.Result{Codec: codec, Meta: meta, Data: body}, nil
}

// result is what is kept of the answer.
func (rec *recorder) result() onceward.Result {
	result := onceward.Result{Codec: codec, Meta: rec.meta}
	switch n := len(rec.body); {
	case len(rec.meta) > maxMeta:
		result.Meta, result.Tombstone = rec.meta[:3], true // the status
	case rec.streaming:
		result.Tombstone = true
	case n == 0:
		result.Data = []byte{}
	default:
		result.Data = rec.body[:n:n] // a store copies what it keeps, storetest sees to that
	}
	return result
}
