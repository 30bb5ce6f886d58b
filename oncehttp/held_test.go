package oncehttp_test

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// TestLateHeaders: what is sent is what WriteHeader found, however long the answer is; trailers alone come later.
func TestLateHeaders(t *testing.T) {
	t.Parallel()
	outer, link := http.Header{"X-Outer": {"1"}}, http.Header{"X-Outer": {"1"}, "Link": {"a"}}
	many := http.Header{"X-Outer": {"1"}}
	for c := 'A'; c <= 'N'; c++ {
		many.Set("X-"+string(c), "1")
	}
	sum := http.Header{"X-Sum": {"1"}, "X-More": {"2"}}
	for _, c := range []struct {
		name          string
		before, after func(h http.Header)
		want, trailer http.Header
	}{
		{"none", func(http.Header) {}, func(http.Header) {}, outer, nil},
		{"set", func(h http.Header) { h.Set("Link", "a") }, func(h http.Header) { h.Set("Link", "b") }, link, nil},
		{"added", func(h http.Header) { h.Set("Link", "a") }, func(h http.Header) { h.Add("Link", "b") }, link, nil},
		{"added in place", func(h http.Header) { h["Link"] = append(make([]string, 0, 9), "a") }, func(h http.Header) { h.Add("Link", "b") }, link, nil},
		{"deleted", func(h http.Header) { h.Set("Link", "a") }, func(h http.Header) { h.Del("Link") }, link, nil},
		{"one for another", func(h http.Header) { h.Set("Link", "a") }, func(h http.Header) { h.Del("Link"); h.Set("Vary", "b") }, link, nil},
		{"one of no lines for another", func(h http.Header) { h["Content-Type"] = nil }, func(h http.Header) { h.Del("Content-Type"); h["Vary"] = nil }, outer, nil},
		{"the outer one deleted before", func(h http.Header) { h.Del("X-Outer"); h.Set("Link", "a") }, func(h http.Header) { h.Set("X-Outer", "2") }, http.Header{"Link": {"a"}}, nil},
		{"many", func(h http.Header) { maps.Copy(h, many) }, func(h http.Header) { clear(h) }, many, nil},
		{"trailers", func(h http.Header) { h.Set("Trailer", "X-Sum, X-Never") }, func(h http.Header) {
			maps.Copy(h, http.Header{"X-Sum": {"1"}, http.TrailerPrefix + "X-More": {"2"}, "Link": {"late"}, "Onceward-Outcome": {"final"}})
		}, outer, sum},
	} {
		for kind, limit := range map[string]int{"held back": 0, "streamed": 5} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				t.Parallel()
				left := make(chan http.Header, 1)
				s := newSite(t, onceward.Operation{}, &oncehttp.Options{MaxResult: limit}, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("X-Hint", "1")
					w.WriteHeader(http.StatusEarlyHints)
					w.Header().Del("X-Hint")
					c.before(w.Header())
					w.WriteHeader(http.StatusCreated)
					c.after(w.Header())
					_, _ = io.WriteString(w, "a long answer")
					c.after(w.Header())
				})
				s.around(t, func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("X-Outer", "1")
						next.ServeHTTP(w, r)
						left <- w.Header().Clone()
					})
				})
				r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("x"))
				r.Header.Set("Idempotency-Key", "K")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				ours := func(name string, _ []string) bool {
					return name != "Link" && name != "Vary" && !strings.HasPrefix(name, "X-")
				}
				maps.DeleteFunc(resp.Header, ours)
				maps.DeleteFunc(resp.Trailer, func(_ string, values []string) bool { return values == nil }) // announced, not sent
				if string(body) != "a long answer" || resp.StatusCode != 201 || !maps.EqualFunc(resp.Header, c.want, slices.Equal[[]string]) ||
					!maps.EqualFunc(resp.Trailer, c.trailer, slices.Equal[[]string]) {
					t.Errorf("%d %q, sent %v, trailers %v; want %v and %v", resp.StatusCode, body, resp.Header, resp.Trailer, c.want, c.trailer)
				}
				if h := <-left; h.Get("Onceward-Outcome") != "" {
					t.Errorf("left behind: %v", h)
				}
			})
		}
	}
}

// TestOutcomeOutlivesAHint: 1xx is not the answer that it speaks of.
func TestOutcomeOutlivesAHint(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		oncehttp.SetOutcome(w, oncehttp.NotDone)
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
	})
	for range 2 {
		s.do(t, "POST", "/x", "K", "x")
	}
	s.wantRuns(t, 2)
}
