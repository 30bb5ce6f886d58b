package oncehttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// run lets the handler work under the attempt and records its answer before it leaves.
func (m *middleware) run(w http.ResponseWriter, r *http.Request, body []byte, a *onceward.Attempt) {
	var work struct { // in one piece, because each request makes one
		rec  recorder
		body wholeBody
		said [2]string // values of our headers
		meta [96]byte  // memory for rec.meta
	}
	ctx, rec := a.Context(), &work.rec
	rec.init(w, r, m.opts.MaxResult, m.opts.Budget)
	rec.m, rec.attempt, rec.meta = m, a, work.meta[:0]
	defer rec.release()
	returned := false
	defer func() {
		if !returned { // a panic, http.ErrAbortHandler among them, or Goexit: it goes on as it is
			rec.done = true
			rec.hearReason()
			if !rec.streaming {
				rec.headers.restore(w.Header()) // whoever recovers writes an answer of his own
			}
			kind := driver.Unknown
			if a.Repeatable() {
				kind = driver.Retryable
			}
			_, _ = a.Fail(ctx, kind, rec.why(errors.New("the handler panicked or left by Goexit")), onceward.Result{})
		}
	}()
	in := inner(ctx, r)
	work.body.give(in, body)
	m.next.ServeHTTP(rec, in)
	rec.finish()
	returned = true

	outcome, stated := m.judge(rec)
	if rec.cut() || rec.status < 200 {
		outcome = Unknown // whatever was said of it: there is no whole answer
	}
	end := m.record(ctx, a, rec, outcome, stated)
	h := w.Header()
	switch {
	case end.Superseded && !rec.streaming:
		rec.headers.restore(h)
		m.answer(w, r, &end.Decision)
		return
	case !rec.streaming:
		word := m.statusWord(a, outcome)
		if word == "executed" && !end.Recorded {
			word = "unrecorded"
		}
		work.said[0] = word
		h[HeaderStatus] = work.said[:1:1]
		if word == "executed" && !end.ExpiresAt.IsZero() {
			work.said[1] = date(end.ExpiresAt)
			h[HeaderExpires] = work.said[1:]
		}
	case !end.Recorded && !a.Bypassed():
		h.Set(http.TrailerPrefix+HeaderStatus, "unrecorded") // the headers are out
	}
	rec.send()
}

func (m *middleware) statusWord(a *onceward.Attempt, o Outcome) string {
	switch {
	case a.Bypassed():
		return "bypassed"
	case o == Unknown:
		return "unknown"
	case o == NotDone:
		return "none"
	}
	return "executed"
}

// judge says what the answer means: by the handler's own word or the route's table, which state it, or by the status.
func (m *middleware) judge(rec *recorder) (o Outcome, stated bool) {
	if rec.outcome != "" {
		if o, err := ParseOutcome(rec.outcome); err == nil {
			return o, true
		}
	}
	if o, ok := m.opts.OnStatus[rec.status]; ok && o != ByStatus {
		return o, true
	}
	o = outcomeOf(rec.status, rec.w.Header(), rec.attempt.Repeatable)
	if _, open := rec.attempt.OpenStep(); open && o == NotDone {
		o = Unknown // a status alone does not speak for a call whose answer is missing
	}
	return o, false
}

func (m *middleware) record(ctx context.Context, a *onceward.Attempt, rec *recorder, o Outcome, stated bool) onceward.End {
	var result onceward.Result
	if o == Done || o == Final {
		result = rec.result()
	}
	var end onceward.End
	if o == Done {
		end, _ = a.Succeed(ctx, result)
	} else {
		why := rec.why(statusError(rec.status))
		if o == NotDone && stated {
			why = onceward.Retryable(why)
		}
		end, _ = a.Fail(ctx, o.failure(), why, result)
	}
	return end
}

type statusError int

func (e statusError) Error() string { return "HTTP status " + strconv.Itoa(int(e)) }

// inner is the request that the handler sees, a copy: detached from the client's connection, and with a coding in
// Accept-Encoding only where a replay to a client that can't read it could be decoded.
func inner(ctx context.Context, r *http.Request) *http.Request {
	in := r.WithContext(ctx)
	lines := r.Header["Accept-Encoding"]
	if len(lines) > 0 && !(len(lines) == 1 && (lines[0] == "gzip" || lines[0] == "identity")) {
		coding := "identity"
		if accepts(lines, "gzip") {
			coding = "gzip"
		}
		in.Header = r.Header.Clone()
		in.Header.Set("Accept-Encoding", coding)
	}
	return in
}
