package oncehttp_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/storetest"
)

// gzipped is a compressor around a handler: it speaks of its own form in the headers.
func gzipped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Etag", `"v1-gzip"`)
		w.WriteHeader(rec.Code)
		zw := gzip.NewWriter(w)
		_, _ = zw.Write(rec.Body.Bytes())
		_ = zw.Close()
	})
}

// plainly asks as a client that decodes nothing by itself. An accept of "-" is no header.
func (s *site) plainly(t *testing.T, key, accept string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	if accept != "-" {
		r.Header.Set("Accept-Encoding", accept)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// text undoes the coding that an answer says it has.
func (a answer) text(t *testing.T) string {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" {
		return a.body
	}
	zr, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatalf("%q says that it is gzip: %v", a.body, err)
	}
	b, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCaseB024CodingFitsTheClient: never bytes that a client said it can't read, in either order of the chain, and never a
// header that speaks of another form than the one that is sent.
func TestCaseB024CodingFitsTheClient(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", `"v1"`)
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "hello")
		})
		for order, c := range map[string]struct {
			chain   func(once func(http.Handler) http.Handler) http.Handler
			decoded string // the tag of an answer without coding
		}{
			"gzip outside": {func(once func(http.Handler) http.Handler) http.Handler { return gzipped(once(hello)) }, `"v1"`},
			"gzip inside":  {func(once func(http.Handler) http.Handler) http.Handler { return once(gzipped(hello)) }, ""},
		} {
			s := siteOn(t, stores.Open(t), onceward.Operation{}, nil, nil)
			once, err := oncehttp.New(s.op, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.around(t, func(http.Handler) http.Handler { return c.chain(once) })
			first := s.plainly(t, "K", "gzip")
			for _, accept := range []string{"gzip", "gzip, br", "br, *;q=0.5", "identity", "gzip;q=0", "br", ""} {
				a := s.plainly(t, "K", accept)
				coded := a.header.Get("Content-Encoding") == "gzip"
				if a.text(t) != "hello" || coded && !strings.Contains(accept, "gzip") && !strings.Contains(accept, "*") {
					t.Errorf("%s, %q: %q coded %v", order, accept, a.body, coded)
				}
				if coded && order == "gzip inside" && a.body != first.body {
					t.Errorf("%s, %q: %q, the first got %q", order, accept, a.body, first.body)
				}
				tag := c.decoded
				if coded {
					tag = `"v1-gzip"`
				}
				if got := a.header.Get("Etag"); got != tag {
					t.Errorf("%s, %q: tag %s of a coded %v answer", order, accept, got, coded)
				}
				if got := a.header.Values("Vary"); len(got) != 1 || got[0] != "Accept-Encoding" {
					t.Errorf("%s, %q: vary %q", order, accept, got)
				}
				if got := a.header.Get("Content-Length"); got != strconv.Itoa(len(a.body)) {
					t.Errorf("%s, %q: length %s of %d bytes", order, accept, got, len(a.body))
				}
			}
		}
	})
}

// TestCaseB027CodingPassesAsItIs: a handler that always codes is not asked what its client reads. What the first client
// got, a duplicate gets, byte for byte and header for header, with Accept-Encoding and without.
func TestCaseB027CodingPassesAsItIs(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		s := siteOn(t, stores.Open(t), onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Accept-Encoding", "gzip") // whatever was said
			gzipped(respond(201, "hello")).ServeHTTP(w, r)
		})
		for _, accept := range []string{"-", "gzip"} {
			first, again := s.plainly(t, "K "+accept, accept), s.plainly(t, "K "+accept, accept)
			if first.text(t) != "hello" || first.header.Get("Content-Encoding") != "gzip" || first.status != 201 {
				t.Errorf("%q: first %+v", accept, first)
			}
			if again.body != first.body || again.status != first.status || again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%q: %d bytes, then %+v", accept, len(first.body), again)
			}
			for _, name := range []string{"Content-Encoding", "Content-Length", "Content-Type", "Etag", "Vary"} {
				if got, want := again.header[name], first.header[name]; !slices.Equal(got, want) {
					t.Errorf("%q: %s is %q, was %q", accept, name, got, want)
				}
			}
		}
		s.wantRuns(t, 2)
	})
}
