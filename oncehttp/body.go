package oncehttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Budget bounds the bytes of requests and answers that guarded calls hold at one time. Share one between all
// middlewares of a process. The zero value admits nothing. Safe for concurrent use.
type Budget struct {
	max   int64
	held  atomic.Int64
	small sync.Pool // of *smallBuffer
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

// requestBody is a body that was read whole. A small one stands in memory that goes from request to request, because
// most duplicates are answered without giving it to anybody.
type requestBody struct {
	budget *Budget
	bytes  []byte
	taken  int64
	lent   *smallBuffer // by the budget; nil: the bytes are the request's own
}

type smallBuffer [4 << 10]byte

// own returns the bytes for a handler, which may keep them.
func (b *requestBody) own() []byte {
	if b.lent != nil {
		b.bytes = bytes.Clone(b.bytes)
		b.giveBack()
	}
	return b.bytes
}

// release ends the use of the bytes, unless they are a handler's.
func (b *requestBody) release() {
	b.budget.give(b.taken)
	b.giveBack()
}

func (b *requestBody) giveBack() {
	if b.lent != nil {
		b.budget.small.Put(b.lent)
		b.lent = nil
	}
}

// read reads the whole body, never more than limit, inside the budget. It must be released, whatever came of it.
func (b *requestBody) read(r *http.Request, limit int64) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > limit {
		return errTooLarge
	}
	size := int64(512)
	if r.ContentLength >= 0 {
		size = min(r.ContentLength+1, maxFirstRead) // one more, to see the end without growing
	}
	for {
		if len(b.bytes) == cap(b.bytes) {
			if !b.grow(size) {
				return errNoBudget
			}
			size = min(2*size, limit+1)
		}
		n, err := r.Body.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case int64(len(b.bytes)) > limit:
			return errTooLarge
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			b.lent = nil // a reader that gave up may still write to it
			return err
		}
	}
}

// grow makes room for size bytes, inside the budget.
func (b *requestBody) grow(size int64) bool {
	if !b.budget.take(size) {
		return false
	}
	b.budget.give(b.taken)
	b.taken = size
	if size > int64(len(smallBuffer{})) {
		b.bytes = append(make([]byte, 0, size), b.bytes...)
		b.giveBack()
		return true
	}
	if b.lent == nil {
		if b.lent, _ = b.budget.small.Get().(*smallBuffer); b.lent == nil {
			b.lent = new(smallBuffer)
		}
	}
	b.bytes = b.lent[:len(b.bytes):size]
	return true
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
