package oncehttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// Budget bounds the bytes of requests and answers that guarded calls hold at one time. Share one between all
// middlewares of a process. The zero value admits nothing. Safe for concurrent use.
type Budget struct {
	max  int64
	held atomic.Int64
}

// NewBudget returns a budget of max bytes.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Held returns the bytes that are held now.
func (b *Budget) Held() int64 { return b.held.Load() }

func (b *Budget) take(n int64) bool {
	for {
		held := b.held.Load()
		if held+n > b.max {
			return false
		}
		if b.held.CompareAndSwap(held, held+n) { // never above max, not even for a moment
			return true
		}
	}
}

func (b *Budget) give(n int64) { b.held.Add(-n) }

var (
	errTooLarge = errors.New("oncehttp: request body over the limit")
	errNoBudget = errors.New("oncehttp: too many bytes in flight")
)

// maxFirstRead bounds what is set aside on the word of a Content-Length alone.
const maxFirstRead = 64 << 10

// readBody reads the whole body, never more than limit, inside the budget. It returns what it took from the budget,
// which the caller gives back.
func readBody(r *http.Request, limit int64, budget *Budget) (body []byte, taken int64, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, 0, nil
	}
	if r.ContentLength > limit {
		return nil, 0, errTooLarge
	}
	size := int64(512)
	if r.ContentLength >= 0 {
		size = min(r.ContentLength+1, maxFirstRead) // one more, to see the end without growing
	}
	for {
		if len(body) == cap(body) {
			if !budget.take(size) {
				return nil, taken, errNoBudget
			}
			grown := make([]byte, len(body), size)
			copy(grown, body)
			budget.give(taken)
			body, taken = grown, size
			size = min(2*size, limit+1)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, taken, errTooLarge
		case errors.Is(err, io.EOF):
			return body, taken, nil
		case err != nil:
			return nil, taken, err
		}
	}
}

// wholeBody is a request body that was read before.
type wholeBody struct {
	bytes.Reader
	bytes []byte
}

func (*wholeBody) Close() error { return nil }

// again is http.Request.GetBody: a proxy may send the body once more.
func (b *wholeBody) again() (io.ReadCloser, error) {
	c := &wholeBody{bytes: b.bytes}
	c.Reset(b.bytes)
	return c, nil
}

// give puts the body into a request, which is the handler's own.
func (b *wholeBody) give(r *http.Request, body []byte) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	if len(body) == 0 {
		r.Body = http.NoBody
		return
	}
	b.bytes = body
	b.Reset(body)
	r.Body, r.GetBody = b, b.again
}
