package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/oncehttp"
)

// TestCaseB044PassingFailureIsNotPinned: an error that says that nothing happened frees the key, however often, unless the
// operation keeps every failure.
func TestCaseB044PassingFailureIsNotPinned(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	onEveryStore(t, func(w *world) {
		for name, c := range map[string]struct {
			o    onceward.Operation
			err  error
			kept bool
		}{
			"plain":                   {onceward.Operation{}, busy, false},
			"retryable":               {onceward.Operation{OnError: onceward.Strict}, onceward.Retryable(busy), false},
			"retryable, kept":         {onceward.Operation{OnError: onceward.KeepFailure}, onceward.Retryable(busy), false},
			"plain, kept":             {onceward.Operation{OnError: onceward.KeepFailure}, busy, true},
			"lost answer, repeatable": {onceward.Operation{Repeatable: true}, fmt.Errorf("%w: %w", busy, context.DeadlineExceeded), false},
		} {
			ps := w.processes(2, c.o)
			const failures = onceward.DefaultMaxAttempts + 1 // answers don't count as deaths
			for i := range failures {
				if a := ps[i%2].pay(name, func(context.Context) error { return c.err }); a.err == nil || !errors.Is(a.err, busy) && i == 0 {
					w.Errorf("%s: %v", name, a)
				}
			}
			again := ps[0].pay(name, nil)
			if c.kept {
				w.wantFinal("busy", again)
				w.wantRuns(name, 1)
				continue
			}
			w.wantRun(failures+1, again)
			w.wantReplay(again.body, ps[1].pay(name, nil))
			w.wantRuns(name, failures+1)
		}
	})
}

// wantFinal demands the first failure, by its text.
func (w *world) wantFinal(text string, a answer) {
	w.Helper()
	var final *onceward.FinalError
	if !errors.As(a.err, &final) || final.Text != text || a.body != nil || a.info.Kind != onceward.KindReplayFailure {
		w.Errorf("got %v, want the first failure %q", a, text)
	}
}

// once answers with the first of the functions, and from then on with the second.
func once(first, then http.HandlerFunc) http.HandlerFunc {
	n := 0
	return func(rw http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			first(rw, r)
			return
		}
		then(rw, r)
	}
}

func respond(status int, headers ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			rw.Header().Set(headers[i], headers[i+1])
		}
		rw.WriteHeader(status)
		_, _ = fmt.Fprintf(rw, "own words of %d", status)
	}
}

// TestCaseB044StatusThatFreesTheKey: the failure and its hint are passed on, the next request runs, and its answer stays.
func TestCaseB044StatusThatFreesTheKey(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		for name, first := range map[string]http.HandlerFunc{
			"503 that says so": respond(503, oncehttp.HeaderOutcome, "not-done"),
			"503 with a hint":  respond(503, "Retry-After", "1"),
			"429 with a hint":  respond(429, "Retry-After", "1"),
			"408":              respond(408),
			"425":              respond(425),
			"500 of the route": respond(500),
		} {
			opts := &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{500: oncehttp.NotDone}}
			s := w.site(opts, once(first, respond(201)))
			other := w.site(opts, respond(201))
			want := httptest.NewRecorder()
			first(want, nil)
			if got := s.post("/x", name, "x"); got.Code != want.Code || got.Body.String() != want.Body.String() || got.Header().Get("Retry-After") != want.Header().Get("Retry-After") {
				w.Errorf("%s: %d %q %v", name, got.Code, got.Body, got.Header())
			}
			second := s.post("/x", name, "x")
			if second.Code != 201 || second.Header().Get(oncehttp.HeaderReplayed) != "" {
				w.Errorf("%s: %d %q", name, second.Code, second.Body)
			}
			w.wantSame(second, s.post("/x", name, "x"))
			w.wantSame(second, other.post("/x", name, "x"))
			w.wantRuns("POST /x "+name, 2)
		}
	})
}

// TestCaseB046NoCanBeTheAnswer: a 409 of the handler's own stays, unless the route or the handler says that it may pass.
func TestCaseB046NoCanBeTheAnswer(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		freed := &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{409: oncehttp.NotDone}}
		for name, c := range map[string]struct {
			opts  *oncehttp.Options
			first http.HandlerFunc
			kept  bool
		}{
			"by default":             {nil, respond(409), true},
			"the route stores it":    {&oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{409: oncehttp.Final}}, respond(409), true},
			"the route frees it":     {freed, respond(409), false},
			"the handler says final": {freed, respond(409, oncehttp.HeaderOutcome, "final"), true},
			"the handler says not":   {nil, respond(409, oncehttp.HeaderOutcome, "not-done"), false},
		} {
			s := w.site(c.opts, once(c.first, respond(201)))
			other := w.site(c.opts, respond(201))
			first := s.post("/x", name, "x")
			if first.Code != 409 || first.Body.String() != "own words of 409" {
				w.Errorf("%s: %d %q", name, first.Code, first.Body)
			}
			second := s.post("/x", name, "x")
			if c.kept {
				w.wantSame(first, second)
				w.wantSame(first, other.post("/x", name, "x"))
				w.wantRuns("POST /x "+name, 1)
				continue
			}
			if second.Code != 201 {
				w.Errorf("%s: %d %q", name, second.Code, second.Body)
			}
			w.wantSame(second, other.post("/x", name, "x"))
			w.wantRuns("POST /x "+name, 2)
		}

		// The same of a function.
		ps := w.processes(2, onceward.Operation{})
		taken := errors.New("slot taken: já, 満席")
		first := ps[0].pay("function", func(context.Context) error { return onceward.Final(taken) })
		var final *onceward.FinalError
		if !errors.As(first.err, &final) || !errors.Is(first.err, taken) || !first.info.Recorded {
			w.Errorf("%v", first)
		}
		for _, p := range ps {
			w.wantFinal(taken.Error(), p.pay("function", nil))
		}
		w.wantRuns("function", 1)
	})
}

// TestCaseB048CorrectedRequestIsAnotherIntent: it never gets the old answer. That holds where the route frees the key too:
// the key stays with its request, and a corrected request takes a new one.
func TestCaseB048CorrectedRequestIsAnotherIntent(t *testing.T) {
	t.Parallel()
	const wrong, right = `{"otp":0}`, `{"otp":1}`
	check := func(rw http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) != right {
			respond(400)(rw, r)
			return
		}
		respond(200)(rw, r)
	}
	onEveryStore(t, func(w *world) {
		for name, c := range map[string]struct {
			opts *oncehttp.Options
			runs int // of the wrong request, sent twice
		}{
			"stored": {nil, 1},
			"freed":  {&oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{400: oncehttp.NotDone}}, 2},
		} {
			sites := []*site{w.site(c.opts, check), w.site(c.opts, check)}
			for range 2 {
				if got := sites[0].post("/x", name, wrong); got.Code != 400 || got.Body.String() != "own words of 400" {
					w.Errorf("%s: %d %q", name, got.Code, got.Body)
				}
			}
			for _, s := range sites {
				w.wantProblem(422, onceward.CodeMismatch, s.post("/x", name, right))
			}
			w.wantRuns("POST /x "+name, c.runs)
			if got := sites[1].post("/x", name+" corrected", right); got.Code != 200 {
				w.Errorf("%s: %d %q", name, got.Code, got.Body)
			}
		}
	})
}

// TestCaseB049ServerErrorsAreTheRoutesChoice, and unknown by default: the first caller gets the handler's own words, and no
// duplicate runs again.
func TestCaseB049ServerErrorsAreTheRoutesChoice(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		onStatus := func(o oncehttp.Outcome) *oncehttp.Options {
			return &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{500: o}}
		}
		for name, c := range map[string]struct {
			o     onceward.Operation
			opts  *oncehttp.Options
			first http.HandlerFunc
			runs  int
			left  driver.Failure
		}{
			"by default":               {onceward.Operation{}, nil, respond(500), 1, driver.Unknown},
			"503 without a hint":       {onceward.Operation{}, nil, respond(503), 1, driver.Unknown},
			"repeatable":               {onceward.Operation{Repeatable: true}, nil, respond(500), 2, 0},
			"the route stores it":      {onceward.Operation{}, onStatus(oncehttp.Final), respond(500), 1, driver.Final},
			"the route frees it":       {onceward.Operation{}, onStatus(oncehttp.NotDone), respond(500), 2, 0},
			"the handler stores it":    {onceward.Operation{}, nil, respond(500, oncehttp.HeaderOutcome, "done"), 1, 0},
			"the handler frees it":     {onceward.Operation{}, nil, respond(500, oncehttp.HeaderOutcome, "not-done"), 2, 0},
			"the handler can not tell": {onceward.Operation{}, onStatus(oncehttp.Final), respond(500, oncehttp.HeaderOutcome, "unknown"), 1, driver.Unknown},
		} {
			s := w.siteOf(c.o, c.opts, once(c.first, respond(201)))
			other := w.siteOf(c.o, c.opts, respond(201))
			want := httptest.NewRecorder()
			c.first(want, nil)
			first := s.post("/x", name, "x")
			if first.Code != want.Code || first.Body.String() != want.Body.String() || first.Header().Get(oncehttp.HeaderOutcome) != "" {
				w.Errorf("%s: %d %q %v", name, first.Code, first.Body, first.Header())
			}
			second := other.post("/x", name, "x")
			switch {
			case c.left == driver.Unknown:
				w.wantProblem(409, onceward.CodeOutcomeUnknown, second)
				w.wantProblem(409, onceward.CodeOutcomeUnknown, s.post("/x", name, "x"))
				if status := first.Header().Get(oncehttp.HeaderStatus); status != "unknown" {
					w.Errorf("%s: the first caller is told %q", name, status)
				}
			case c.runs == 1:
				w.wantSame(first, second)
			default:
				if second.Code != 201 {
					w.Errorf("%s: %d %q", name, second.Code, second.Body)
				}
				w.wantSame(second, s.post("/x", name, "x"))
			}
			w.wantRuns("POST /x "+name, c.runs)
		}
	})
}

// TestCaseB049ErrorValueIsNotAStatus: what a framework makes of a handler's error is what was answered, and so is kept.
func TestCaseB049ErrorValueIsNotAStatus(t *testing.T) {
	t.Parallel()
	missing := errors.New("no such order")
	handler := func(http.ResponseWriter, *http.Request) error { return missing }
	mapped := func(rw http.ResponseWriter, r *http.Request) {
		if err := handler(rw, r); errors.Is(err, missing) {
			http.Error(rw, err.Error(), http.StatusNotFound)
		}
	}
	onEveryStore(t, func(w *world) {
		s, other := w.site(nil, mapped), w.site(nil, mapped)
		first := s.post("/x", "K", "x")
		if first.Code != 404 || first.Body.String() != "no such order\n" {
			w.Errorf("%d %q", first.Code, first.Body)
		}
		w.wantSame(first, s.post("/x", "K", "x"))
		w.wantSame(first, other.post("/x", "K", "x"))
		w.wantRuns("POST /x K", 1)
	})
}
