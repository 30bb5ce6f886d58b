package oncehttp

import (
	"errors"
	"fmt"
	"log/slog"
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
	// Scope names the authenticated caller. It must not invent one: an error, a panic, the zero Scope or one that is too long
	// refuses the request. Why is logged, and never shown to the client. Required unless the guard is SingleTenant.
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

	// Logger gets the errors of Scope. Nil: slog.Default().
	Logger *slog.Logger
}

type middleware struct {
	op      *onceward.Op
	opts    Options
	next    http.Handler
	rules   fingerprintRules
	early   bool // no key source needs the body
	methods map[string]bool
}

// New returns the middleware of an operation. Errors: no Scope without SingleTenant, a negative limit, or
// a place in Keys or LeaveOut that is none.
func New(op *onceward.Op, opts *Options) (func(http.Handler) http.Handler, error) {
	if op == nil {
		return nil, errors.New("oncehttp: New needs an operation that a guard defined")
	}
	m := middleware{op: op, methods: map[string]bool{}}
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
	if o.Logger == nil {
		o.Logger = slog.Default()
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
		if source.find == nil {
			return nil, errors.New("oncehttp: Options.Keys has a zero KeySource: use FromHeader, FromQuery, FromJSON or FromForm")
		}
		if source.leaveOut != nil {
			source.leaveOut(&m.rules)
		}
	}
	for _, pointer := range m.rules.json {
		if err := fingerprint.CheckPointer(pointer); err != nil {
			return nil, fmt.Errorf("oncehttp: json:%s: %w", pointer, err)
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
			m.op.Unclaimed("ignored", nil)
			w.Header().Set(HeaderStatus, "ignored")
		}
		m.pass(w, r)
		return
	}
	var k key.Key
	var err error
	if m.early {
		if k, err = findKey(m.opts.Keys, r, nil); m.refuseKey(w, r, k, err) {
			return
		}
		if k.IsZero() {
			m.passKeyless(w, r)
			return
		}
	}
	scope, err := m.scope(r)
	if err != nil {
		m.opts.Logger.Warn("oncehttp: the caller of a request could not be named, so it was refused",
			slog.String("operation", m.op.Name()), slog.Any("error", err))
		m.refuseEarly(w, r, NewProblem(onceward.CodeScopeMissing, 0, "the caller could not be named"), err)
		return
	}
	body := requestBody{budget: m.opts.Budget}
	defer body.release()
	if err := body.read(r, m.opts.MaxBody); err != nil {
		m.refuseBody(w, r, err)
		return
	}
	if !m.early {
		if k, err = findKey(m.opts.Keys, r, body.bytes); m.refuseKey(w, r, k, err) {
			return
		}
	}
	if k.IsZero() {
		r = r.WithContext(r.Context()) // a copy
		new(wholeBody).give(r, body.own())
		m.passKeyless(w, r)
		return
	}
	d, err := m.op.Guard().Begin(r.Context(), m.op, onceward.Call{Scope: scope, Key: k, Fingerprint: m.rules.sum(r, body.bytes)})
	if err != nil {
		m.refuse(w, r, err)
		return
	}
	if d.Kind == onceward.KindRun {
		m.run(w, r, body.own(), d.Attempt)
		return
	}
	m.answer(w, r, &d)
}

func (m *middleware) scope(r *http.Request) (scope onceward.Scope, err error) {
	if m.opts.Scope == nil {
		return scope, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("oncehttp: Options.Scope panicked: %v", p)
		}
	}()
	if scope, err = m.opts.Scope(r); err != nil {
		return scope, err
	}
	if scope.IsZero() {
		return scope, errors.New("oncehttp: Options.Scope returned no name and no error")
	}
	probe := driver.Claim{Scope: scope}
	return scope, probe.Check()
}

func (m *middleware) refuseKey(w http.ResponseWriter, r *http.Request, k key.Key, err error) bool {
	switch {
	case err != nil:
		m.refuseEarly(w, r, NewProblem(onceward.CodeKeyInvalid, 0, err.Error()), err)
	case k.IsZero() && m.opts.RequireKey:
		m.refuseEarly(w, r, NewProblem(onceward.CodeKeyMissing, 0, ""), nil)
	default:
		return false
	}
	return true
}

// refuseEarly answers a request for which nothing was claimed, and has it counted.
func (m *middleware) refuseEarly(w http.ResponseWriter, r *http.Request, p Problem, why error) {
	word := string(p.Code)
	if word == "" {
		word = "body_cut"
	}
	m.op.Unclaimed(word, why)
	m.write(w, r, p)
}

func (m *middleware) refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	if r.ProtoMajor == 1 { // in HTTP/2 it would end the other streams
		w.Header().Set("Connection", "close") // what was not read is not read
	}
	var outer *http.MaxBytesError // somebody around us has a limit too
	var p Problem
	switch {
	case errors.Is(err, errTooLarge):
		p = NewProblem(onceward.CodeBodyTooLarge, 0, fmt.Sprintf("at most %d bytes", m.opts.MaxBody))
	case errors.As(err, &outer):
		p = NewProblem(onceward.CodeBodyTooLarge, 0, fmt.Sprintf("at most %d bytes", outer.Limit))
	case errors.Is(err, errNoBudget):
		p = full()
	default: // it is the sender who broke off; should he hear us, this is about HTTP and not about keys
		p = Problem{
			Type: "about:blank", Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest, Retry: onceward.RetrySameKey,
			Detail: "the request body could not be read to its end, so nothing was run: send it again with the same key",
		}
	}
	m.refuseEarly(w, r, p, err)
}

// full says that the server, not the caller, has too much in hand.
func full() Problem {
	p := NewProblem(onceward.CodeTooMany, time.Second, "too many bytes in flight")
	p.Status = http.StatusServiceUnavailable
	return p
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

// answer gives what was decided, other than to run.
func (m *middleware) answer(w http.ResponseWriter, r *http.Request, d *onceward.Decision) {
	switch d.Kind {
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
