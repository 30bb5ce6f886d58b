package oncehttp

import (
	"bytes"
	"net/http"
	"strconv"
)

// recorder holds an answer back until it is recorded or has grown past the limit; then it streams, and holds back only
// its last chunk. It hides what the underlying writer can do beyond writing, because none of that could be replayed.
type recorder struct {
	w      http.ResponseWriter
	r      *http.Request
	budget *Budget
	limit  int

	status    int // 0 until WriteHeader
	outcome   string
	body      bytes.Buffer
	taken     int64
	streaming bool   // headers and the first bytes are out; body is the chunk held back
	onStream  func() // sets our headers before streaming begins
	written   int64
}

func (rec *recorder) Header() http.Header { return rec.w.Header() }

// WriteHeader passes 1xx on and takes the first final status; further calls change nothing.
func (rec *recorder) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		if rec.status == 0 {
			rec.w.WriteHeader(status)
		}
		return
	}
	if rec.status != 0 {
		return
	}
	rec.status = status
	h := rec.w.Header()
	rec.outcome = h.Get(HeaderOutcome)
	h.Del(HeaderOutcome)
}

func (rec *recorder) Write(p []byte) (int, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if !rec.mayHaveBody() {
		return 0, http.ErrBodyNotAllowed
	}
	rec.written += int64(len(p))
	if !rec.streaming && (rec.body.Len()+len(p) > rec.limit || !rec.reserve(len(p))) {
		rec.stream()
	}
	if rec.streaming {
		if _, err := rec.w.Write(rec.body.Bytes()); err != nil {
			rec.body.Reset()
			return 0, err
		}
		rec.body.Reset()
		for len(p) > rec.limit { // never hold more than the limit
			if _, err := rec.w.Write(p[:rec.limit]); err != nil {
				return 0, err
			}
			p = p[rec.limit:]
		}
		n := len(p)
		rec.body.Write(p)
		return n, nil
	}
	return rec.body.Write(p)
}

func (rec *recorder) reserve(n int) bool {
	if need := int64(rec.body.Len()+n) - rec.taken; need > 0 {
		need = max(need, 4<<10)
		if !rec.budget.take(need) {
			return false
		}
		rec.taken += need
	}
	return true
}

func (rec *recorder) stream() {
	rec.streaming = true
	rec.onStream()
	rec.w.WriteHeader(rec.status)
}

// Flush is accepted, and obeyed once streaming: nothing may leave before the answer is recorded.
func (rec *recorder) Flush() {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.streaming {
		_ = http.NewResponseController(rec.w).Flush()
	}
}

func (rec *recorder) mayHaveBody() bool { return bodyAllowed(rec.r.Method, rec.status) }

func bodyAllowed(method string, status int) bool {
	return method != http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified && status >= 200
}

// cut reports whether the handler declared more bytes than it wrote: the answer is not whole.
func (rec *recorder) cut() bool {
	declared := rec.w.Header().Get("Content-Length")
	if declared == "" || !rec.mayHaveBody() {
		return false
	}
	n, err := strconv.ParseInt(declared, 10, 64)
	return err == nil && n > rec.written
}

// send lets the answer, or its last chunk, go.
func (rec *recorder) send() {
	if !rec.streaming {
		rec.w.WriteHeader(rec.status)
	}
	if rec.body.Len() > 0 {
		_, _ = rec.w.Write(rec.body.Bytes())
	}
}

func (rec *recorder) release() {
	rec.budget.give(rec.taken)
	rec.taken = 0
}
