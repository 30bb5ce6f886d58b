package oncehttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/onceward/onceward"
)

// recorder holds an answer back until it is recorded or has grown past the limit; then it streams, and holds back only
// its last bytes. It hides what the underlying writer can do beyond writing, because none of that could be replayed.
type recorder struct {
	w      http.ResponseWriter
	head   bool // of a HEAD request: bytes are taken and dropped, as net/http does
	budget *Budget
	limit  int

	headers  held
	status   int // 0 until WriteHeader
	declared int64
	outcome  string
	reason   string
	meta     []byte

	body      []byte
	taken     int64 // from the budget
	written   int64
	streaming bool // headers and the first bytes are out; body is what is held back
	gone      bool // the client is
	done      bool // the handler has returned

	m       *middleware // to say what the answer means
	attempt *onceward.Attempt
}

// holdBack is how much of a streamed answer waits until the end is recorded.
const holdBack = 512

var errReturned = errors.New("oncehttp: the handler has returned")

func (rec *recorder) init(w http.ResponseWriter, r *http.Request, limit int, budget *Budget) {
	rec.w, rec.head, rec.limit, rec.budget = w, r.Method == http.MethodHead, limit, budget
	rec.headers.begin(w.Header())
}

// Header returns the handler's headers. Changes after WriteHeader have no effect, but for trailers.
func (rec *recorder) Header() http.Header { return rec.w.Header() }

// WriteHeader passes 1xx on and takes the first final status; further calls change nothing.
func (rec *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // net/http's own words: the handler is wrong
	}
	if rec.status != 0 || rec.done {
		return
	}
	h := rec.w.Header()
	rec.hearReason()
	outcome := h[HeaderOutcome]
	delete(h, HeaderOutcome)
	if status < 200 && status != http.StatusSwitchingProtocols {
		rec.w.WriteHeader(status)
		if outcome != nil {
			h[HeaderOutcome] = outcome
		}
		return
	}
	if len(outcome) > 0 {
		rec.outcome = outcome[0]
	}
	rec.status, rec.declared = status, -1
	if lines := h["Content-Length"]; len(lines) > 0 {
		if n, err := strconv.ParseInt(lines[0], 10, 64); err == nil && n >= 0 {
			rec.declared = n
		}
	}
	rec.headers.freeze(h)
	rec.meta = encodeMeta(rec.meta, status, rec.headers.frozen, rec.headers.outer)
}

// hearReason takes what SetReason left, which never reaches the client.
func (rec *recorder) hearReason() {
	h := rec.w.Header()
	if lines, has := h[HeaderReason]; has {
		delete(h, HeaderReason)
		if len(lines) > 0 {
			rec.reason = lines[0]
		}
	}
}

// why is the text of a failure: the handler's own, if it gave one.
func (rec *recorder) why(otherwise error) error {
	if rec.reason != "" {
		return errors.New(rec.reason)
	}
	return otherwise
}

func (rec *recorder) Write(p []byte) (int, error) {
	if err := rec.admit(len(p)); err != nil {
		return 0, err
	}
	switch {
	case rec.head:
	case rec.streaming:
		rec.pass(p)
	default:
		rec.body = append(rec.body, p...)
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (rec *recorder) WriteString(s string) (int, error) {
	if err := rec.admit(len(s)); err != nil {
		return 0, err
	}
	switch {
	case rec.head:
	case rec.streaming:
		rec.pass([]byte(s))
	default:
		rec.body = append(rec.body, s...)
	}
	return len(s), nil
}

// admit decides about n bytes: refused, room made for them, or streaming begun.
func (rec *recorder) admit(n int) error {
	if rec.done {
		return errReturned
	}
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if !statusHasBody(rec.status) {
		return http.ErrBodyNotAllowed
	}
	if rec.declared >= 0 && rec.written+int64(n) > rec.declared {
		return http.ErrContentLength // else what is sent and what is kept would differ
	}
	rec.written += int64(n)
	if !rec.head && !rec.streaming && (len(rec.body)+n > rec.limit || !rec.reserve(n)) {
		rec.stream()
	}
	return nil
}

// reserve makes room for n more bytes, inside the budget.
func (rec *recorder) reserve(n int) bool {
	need := len(rec.body) + n
	if need <= cap(rec.body) {
		return true
	}
	size := max(need, 2*cap(rec.body))
	if rec.declared >= int64(need) {
		size = int(min(rec.declared, int64(rec.limit))) // as much as is coming
	}
	size = min(size, rec.limit)
	if !rec.budget.take(int64(size)) {
		return false
	}
	grown := make([]byte, len(rec.body), size)
	copy(grown, rec.body)
	rec.body = grown
	rec.budget.give(rec.taken)
	rec.taken = int64(size)
	return true
}

func (rec *recorder) stream() {
	rec.streaming = true
	rec.hearReason()
	rec.headers.settle(rec.w.Header())
	outcome, _ := rec.m.judge(rec)
	rec.w.Header().Set(HeaderStatus, rec.m.statusWord(rec.attempt, outcome))
	rec.w.WriteHeader(rec.status)
	rec.headers.trailers(rec.w.Header())
	rec.out(rec.body)
	rec.body = nil
	rec.release()
}

// pass writes what was held back, then p without its end.
func (rec *recorder) pass(p []byte) {
	rec.out(rec.body)
	keep := min(len(p), holdBack)
	rec.out(p[:len(p)-keep])
	rec.body = append(rec.body[:0], p[len(p)-keep:]...)
}

// out writes to the client. One that is gone does not stop the handler: its answer is kept.
func (rec *recorder) out(p []byte) {
	if len(p) == 0 || rec.gone {
		return
	}
	_, err := rec.w.Write(p)
	rec.gone = err != nil
}

// Flush is accepted, and obeyed once streaming: nothing may leave before the answer is recorded.
func (rec *recorder) Flush() {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.streaming && !rec.done {
		_ = http.NewResponseController(rec.w).Flush()
	}
}

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex are for http.ResponseController.

func (rec *recorder) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetReadDeadline(t)
}

func (rec *recorder) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetWriteDeadline(t)
}

func (rec *recorder) EnableFullDuplex() error {
	return http.NewResponseController(rec.w).EnableFullDuplex()
}

// finish is called when the handler has returned: from here on the answer does not change.
func (rec *recorder) finish() {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	rec.done = true
	rec.hearReason()
	if !rec.streaming {
		rec.headers.settle(rec.w.Header())
	}
}

// cut reports whether the handler declared more bytes than it wrote: the answer is not whole.
func (rec *recorder) cut() bool {
	return !rec.head && statusHasBody(rec.status) && rec.written < rec.declared
}

// send lets the answer, or its last bytes, go.
func (rec *recorder) send() {
	if rec.streaming {
		rec.out(rec.body)
		rec.w.Header().Del(HeaderOutcome) // too late, and never for the client
		return
	}
	rec.w.WriteHeader(rec.status)
	rec.out(rec.body)
	rec.headers.trailers(rec.w.Header())
}

func (rec *recorder) release() {
	rec.budget.give(rec.taken)
	rec.taken = 0
}

func statusHasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func bodyAllowed(method string, status int) bool {
	return method != http.MethodHead && statusHasBody(status)
}
