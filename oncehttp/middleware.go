package oncehttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/key"
)

// Options of a middleware. Nil and the zero value are valid for a guard that is SingleTenant.
type Options struct {
	// Scope names the authenticated caller. It must not invent one: an error, a panic or the zero Scope refuses the
	// request. Required unless the guard is SingleTenant.
	Scope func(*http.Request) (onceward.Scope, error)

	// Keys are where the key may stand. Nil: DefaultKeySources.
	Keys []KeySource

	// RequireKey refuses a guarded request without a key by 400; otherwise it passes unguarded.
	RequireKey bool

	// Methods that are guarded. Nil: POST, PUT, PATCH, DELETE.
	Methods []string

	// MaxBody bounds a guarded request's body in bytes: more is a 413 before the handler runs. Zero: 1 MiB.
	MaxBody int64

	// MaxResult bounds the body that is kept for replays, in bytes. A larger answer reaches its first client whole, and
	// duplicates are told that the work is done. Zero: 256 KiB.
	MaxResult int

	// Budget bounds all bytes held at one time. Nil: 256 MiB of its own.
	Budget *Budget

	// LeaveOut lists what does not count for the fingerprint: json:/POINTER, form:NAME, query:NAME.
	LeaveOut []string

	// OnStatus overrides what a status means.
	OnStatus map[int]Outcome

	// Respond, when set, may write every answer that is not the handler's or a replay of it, in the sender's own form; it
	// returns false to leave the answer to us. The status headers are set already.
	Respond func(w http.ResponseWriter, r *http.Request, p Problem) bool
}

type middleware struct {
	op      *onceward.Op
	policy  onceward.Operation
	opts    Options
	next    http.Handler
	rules   fingerprintRules
	early   bool // no key source needs the body
	methods map[string]bool
}

// New returns the middleware of an operation. Errors: no Scope without SingleTenant, or a LeaveOut that is no place.
func New(op *onceward.Op, opts *Options) (func(http.Handler) http.Handler, error) {
	if op == nil {
		return nil, errors.New("oncehttp: New needs an operation that a guard defined")
	}
	m := middleware{op: op, policy: op.Policy(), methods: map[string]bool{}}
	if opts != nil {
		m.opts = *opts
	}
	o := &m.opts
	if o.Scope == nil && !op.Guard().SingleTenant() {
		return nil, errors.New("oncehttp: Options.Scope is missing: name the authenticated caller, or say SingleTenant in the guard's options")
	}
	if o.MaxBody < 0 || o.MaxResult < 0 {
		return nil, errors.New("oncehttp: a limit is negative; zero means the default")
	}
	if o.Keys == nil {
		o.Keys = DefaultKeySources()
	}
	if o.Methods == nil {
		o.Methods = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	}
	for _, method := range o.Methods {
		m.methods[method] = true
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.MaxResult == 0 {
		o.MaxResult = 256 << 10
	}
	if o.Budget == nil {
		o.Budget = NewBudget(256 << 20)
	}
	for _, text := range o.LeaveOut {
		source, err := ParseKeySource(text)
		if err != nil || source.leaveOut == nil {
			return nil, fmt.Errorf("oncehttp: LeaveOut %q: use json:/POINTER, form:NAME or query:NAME", text)
		}
		source.leaveOut(&m.rules)
	}
	m.early = !slices.ContainsFunc(o.Keys, func(s KeySource) bool { return s.needBody })
	for _, source := range o.Keys {
		if source.leaveOut != nil {
			source.leaveOut(&m.rules)
		}
	}
	return func(next http.Handler) http.Handler {
		own := m
		own.next = next
		return &own
	}, nil
}

func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !m.methods[r.Method] {
		if k, err := findKey(m.opts.Keys, r, nil); err != nil || !k.IsZero() {
			w.Header().Set(HeaderStatus, "ignored")
		}
		m.next.ServeHTTP(w, r)
		return
	}
	var k key.Key
	var err error
	if m.early {
		if k, err = findKey(m.opts.Keys, r, nil); m.refuseKey(w, r, k, err) {
			return
		}
		if k.IsZero() {
			m.pass(w, r)
			return
		}
	}
	scope, err := m.scope(r)
	if err != nil {
		m.problem(w, r, onceward.CodeScopeMissing, 0, err.Error())
		return
	}
	body, taken, err := readBody(r, m.opts.MaxBody, m.opts.Budget)
	defer func() { m.opts.Budget.give(taken) }()
	if err != nil {
		m.refuseBody(w, r, err)
		return
	}
	if !m.early {
		if k, err = findKey(m.opts.Keys, r, body); m.refuseKey(w, r, k, err) {
			return
		}
	}
	r = withBody(r, body)
	if k.IsZero() {
		m.pass(w, r)
		return
	}
	d, err := m.op.Guard().Begin(r.Context(), m.op, onceward.Call{Scope: scope, Key: k, Fingerprint: m.sum(r, body)})
	if err != nil {
		m.refuse(w, r, err)
		return
	}
	m.answer(w, r, &d)
}

func (m *middleware) sum(r *http.Request, body []byte) fingerprint.Sum { return m.rules.sum(r, body) }

// pass serves a request without a key, unguarded.
func (m *middleware) pass(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(HeaderStatus, "none")
	m.next.ServeHTTP(w, r)
}

func (m *middleware) scope(r *http.Request) (scope onceward.Scope, err error) {
	if m.opts.Scope == nil {
		return scope, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("finding the caller panicked")
		}
	}()
	if scope, err = m.opts.Scope(r); err == nil && scope.IsZero() {
		err = errors.New("the caller has no name")
	}
	return scope, err
}

func (m *middleware) refuseKey(w http.ResponseWriter, r *http.Request, k key.Key, err error) bool {
	switch {
	case err != nil:
		m.problem(w, r, onceward.CodeKeyInvalid, 0, err.Error())
	case k.IsZero() && m.opts.RequireKey:
		m.problem(w, r, onceward.CodeKeyMissing, 0, "")
	default:
		return false
	}
	return true
}

func (m *middleware) refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errTooLarge):
		w.Header().Set("Connection", "close") // what was not read is not read
		m.problem(w, r, onceward.CodeBodyTooLarge, 0, fmt.Sprintf("at most %d bytes", m.opts.MaxBody))
	case errors.Is(err, errNoBudget):
		w.Header().Set("Connection", "close")
		p := NewProblem(onceward.CodeTooMany, time.Second, "too many bytes in flight")
		p.Status = http.StatusServiceUnavailable // it is the server that is full, not the caller who is greedy
		m.write(w, r, p)
	default:
		m.problem(w, r, onceward.CodeKeyInvalid, 0, "the request body could not be read whole")
	}
}

// refuse answers an error of Begin.
func (m *middleware) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *onceward.Error
	switch {
	case errors.As(err, &e):
		m.problem(w, r, e.Code, e.RetryAfter, e.Detail)
	case errors.Is(err, onceward.ErrClosed):
		m.problem(w, r, onceward.CodeStoreUnavailable, time.Second, "shutting down")
	case r.Context().Err() != nil:
		m.problem(w, r, onceward.CodeInFlight, time.Second, "the wait was cut short")
	default:
		m.problem(w, r, onceward.CodeStoreUnavailable, time.Second, "")
	}
}

func (m *middleware) answer(w http.ResponseWriter, r *http.Request, d *onceward.Decision) {
	switch d.Kind {
	case onceward.KindRun:
		m.run(w, r, d.Attempt)
	case onceward.KindReplay, onceward.KindReplayFailure:
		m.replay(w, r, d)
	case onceward.KindMismatch:
		m.problem(w, r, onceward.CodeMismatch, 0, "")
	case onceward.KindUnknown:
		m.problem(w, r, onceward.CodeOutcomeUnknown, d.RetryAfter, d.Failure)
	case onceward.KindDuplicate:
		m.problem(w, r, onceward.CodeDuplicate, 0, "")
	case onceward.KindSuperseded:
		m.problem(w, r, onceward.CodeSuperseded, d.RetryAfter, "")
	default:
		m.problem(w, r, onceward.CodeInFlight, d.RetryAfter, "")
	}
}

// run lets the handler work under the attempt and records its answer before it leaves.
func (m *middleware) run(w http.ResponseWriter, r *http.Request, a *onceward.Attempt) {
	ctx := a.Context()
	status := "executed"
	if a.Bypassed() {
		status = "bypassed"
	}
	rec := &recorder{w: w, r: r, budget: m.opts.Budget, limit: m.opts.MaxResult}
	rec.onStream = func() { w.Header().Set(HeaderStatus, status) }
	defer rec.release()
	returned := false
	defer func() {
		if !returned { // a panic, http.ErrAbortHandler among them, or Goexit: it goes on as it is
			kind := driver.Unknown
			if m.policy.Repeatable {
				kind = driver.Retryable
			}
			_, _ = a.Fail(ctx, kind, errors.New("the handler panicked or left by Goexit"), onceward.Result{})
		}
	}()
	m.next.ServeHTTP(rec, inner(ctx, r))
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	returned = true

	outcome := m.judge(rec)
	end := m.record(ctx, a, rec, outcome)
	h := w.Header()
	switch {
	case end.Superseded && !rec.streaming:
		for name := range h {
			if kept[name] {
				delete(h, name)
			}
		}
		h.Del("Content-Length")
		m.answer(w, r, &end.Decision)
		return
	case rec.streaming:
	case a.Bypassed():
		h.Set(HeaderStatus, "bypassed")
	case outcome == Unknown:
		h.Set(HeaderStatus, "unknown")
	case !end.Recorded:
		h.Set(HeaderStatus, "unrecorded")
	default:
		h.Set(HeaderStatus, "executed")
		if outcome != NotDone {
			setExpires(h, end.ExpiresAt)
		}
	}
	rec.send()
}

// judge says what the answer means: by the handler's own word, the route's table, or the status.
func (m *middleware) judge(rec *recorder) Outcome {
	if rec.cut() {
		return Unknown
	}
	if o, err := ParseOutcome(rec.outcome); err == nil {
		return o
	}
	if o, ok := m.opts.OnStatus[rec.status]; ok && o != ByStatus {
		return o
	}
	return outcomeOf(rec.status, rec.w.Header(), m.policy)
}

func (m *middleware) record(ctx context.Context, a *onceward.Attempt, rec *recorder, o Outcome) onceward.End {
	result := onceward.Result{Codec: "http", Meta: encodeMeta(rec.status, rec.w.Header())}
	if rec.streaming {
		result.Tombstone = true
	} else {
		result.Data = bytes.Clone(rec.body.Bytes())
		if result.Data == nil {
			result.Data = []byte{}
		}
	}
	var end onceward.End
	if o == Done {
		end, _ = a.Succeed(ctx, result)
	} else {
		end, _ = a.Fail(ctx, o.failure(), fmt.Errorf("HTTP status %d", rec.status), result)
	}
	return end
}

// inner is the request that the handler sees: detached from the client's connection, and with a coding in
// Accept-Encoding only where a replay to a client that can't read it could be decoded.
func inner(ctx context.Context, r *http.Request) *http.Request {
	r = r.WithContext(ctx)
	if lines := r.Header.Values("Accept-Encoding"); len(lines) > 0 && !(len(lines) == 1 && (lines[0] == "gzip" || lines[0] == "identity")) {
		coding := "identity"
		if accepts(lines, "gzip") {
			coding = "gzip"
		}
		r.Header = r.Header.Clone()
		r.Header.Set("Accept-Encoding", coding)
	}
	return r
}

// withBody gives the request the body that was read from it, with its length.
func withBody(r *http.Request, body []byte) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	c := *r
	c.Body = io.NopCloser(bytes.NewReader(body))
	c.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil } // for proxies
	c.ContentLength = int64(len(body))
	c.TransferEncoding = nil
	if len(body) == 0 {
		c.Body = http.NoBody
	}
	return &c
}

func (m *middleware) problem(w http.ResponseWriter, r *http.Request, code onceward.Code, after time.Duration, detail string) {
	m.write(w, r, NewProblem(code, after, detail))
}

func (m *middleware) write(w http.ResponseWriter, r *http.Request, p Problem) {
	if s := statusWord(p.Code); s != "" {
		w.Header().Set(HeaderStatus, s)
	}
	if m.opts.Respond != nil && m.opts.Respond(w, r, p) {
		return
	}
	p.Write(w)
}

func statusWord(c onceward.Code) string {
	switch c {
	case onceward.CodeInFlight, onceward.CodeSuperseded:
		return "in_flight"
	case onceward.CodeMismatch:
		return "mismatch"
	case onceward.CodeOutcomeUnknown:
		return "unknown"
	}
	return ""
}
