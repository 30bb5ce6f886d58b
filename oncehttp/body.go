package oncehttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// Budget bounds the bytes of requests and answers that guarded calls hold at one time. Share one between all
// middlewares of a process. Safe for concurrent use.
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
		if b.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

func (b *Budget) give(n int64) { b.held.Add(-n) }

var (
	errTooLarge = errors.New("oncehttp: request body over the limit")
	errNoBudget = errors.New("oncehttp: too many bytes in flight")
)

// readBody reads the whole body, never more than limit, inside the budget. It returns what it took from the budget.
func readBody(r *http.Request, limit int64, budget *Budget) (body []byte, taken int64, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, 0, nil
	}
	if r.ContentLength > limit {
		return nil, 0, errTooLarge
	}
	// The declared length is only a hint for how much to take at first; the limit holds for what really comes.
	chunk := min(max(r.ContentLength, 512), 64<<10)
	var buf bytes.Buffer
	for {
		if !budget.take(chunk) {
			return nil, taken, errNoBudget
		}
		taken += chunk
		buf.Grow(int(chunk))
		n, err := io.CopyN(&buf, r.Body, chunk)
		budget.give(chunk - n)
		taken -= chunk - n
		switch {
		case errors.Is(err, io.EOF):
			return buf.Bytes(), taken, nil
		case err != nil:
			return nil, taken, err
		case int64(buf.Len()) > limit:
			return nil, taken, errTooLarge
		}
		chunk = min(chunk*2, limit+1-int64(buf.Len()), 256<<10)
		if chunk < 1 {
			chunk = 1
		}
	}
}
