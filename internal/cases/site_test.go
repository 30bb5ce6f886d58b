package cases

import (
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// site is a process whose front door is HTTP.
type site struct {
	*process
	http.Handler
}

// site counts a handler's runs as "METHOD path key".
func (w *world) site(opts *oncehttp.Options, h http.HandlerFunc) *site {
	w.Helper()
	return w.siteOf(onceward.Operation{}, opts, h)
}

func (w *world) siteOf(o onceward.Operation, opts *oncehttp.Options, h http.HandlerFunc) *site {
	w.Helper()
	p := w.process(o)
	once, err := oncehttp.New(p.op, opts)
	if err != nil {
		w.Fatal(err)
	}
	return &site{p, once(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.ledger.Add(r.Method + " " + r.URL.Path + " " + r.Header.Get("Idempotency-Key"))
		h(rw, r)
	}))}
}

func (s *site) post(path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(s.w.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	rw := httptest.NewRecorder()
	s.ServeHTTP(rw, r)
	return rw
}

// wantSame demands that a duplicate got the first answer, and was told so.
func (w *world) wantSame(first, again *httptest.ResponseRecorder) {
	w.Helper()
	if again.Code != first.Code || again.Body.String() != first.Body.String() || again.Header().Get(oncehttp.HeaderReplayed) != "true" {
		w.Errorf("first %d %.99q, then %d %.99q, status %q", first.Code, first.Body, again.Code, again.Body, again.Header().Get(oncehttp.HeaderStatus))
	}
}

// wantProblem demands an answer of ours, of that status and code.
func (w *world) wantProblem(status int, code onceward.Code, got *httptest.ResponseRecorder) {
	w.Helper()
	if got.Code != status || !strings.Contains(got.Body.String(), `"code":"`+string(code)+`"`) {
		w.Errorf("got %d %q, want %d %s", got.Code, got.Body, status, code)
	}
}
