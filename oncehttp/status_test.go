package oncehttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// TestStatusWord: an answer that leaves the key free is not said to be executed, however it comes to be one.
func TestStatusWord(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000) // above MaxResult, so that headers leave before the end
	for _, c := range []struct {
		name    string
		o       onceward.Operation
		status  int
		header  string
		body    string
		word    string
		expires bool
	}{
		{"done", onceward.Operation{}, 201, "", "paid", "executed", true},
		{"done, long", onceward.Operation{}, 201, "", long, "executed", false},
		{"final", onceward.Operation{}, 422, "", "no", "executed", true},
		{"too many", onceward.Operation{}, 429, "", "later", "none", false},
		{"busy", onceward.Operation{}, 503, "", "later", "none", false},
		{"busy, long", onceward.Operation{}, 503, "", long, "none", false},
		{"the handler says not done", onceward.Operation{}, 502, "not-done", "unreachable", "none", false},
		{"repeatable", onceward.Operation{Repeatable: true}, 500, "", "again", "none", false},
		{"unknown", onceward.Operation{}, 500, "", "lost", "unknown", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c.o, &oncehttp.Options{MaxResult: 1000}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1")
				if c.header != "" {
					w.Header().Set(oncehttp.HeaderOutcome, c.header)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			a := s.do(t, "POST", "/x", "K", "x")
			if a.status != c.status || a.body != c.body || a.header.Get(oncehttp.HeaderStatus) != c.word || (a.header.Get(oncehttp.HeaderExpires) != "") != c.expires {
				t.Errorf("%d %v", a.status, a.header)
			}
		})
	}
}
