package oncehttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// TestBodiesAreTheirHandlers: a handler gets its request whole, whatever its size and framing, and what it kept does not
// change under it when others come.
func TestBodiesAreTheirHandlers(t *testing.T) {
	t.Parallel()
	kept := make(chan func() (io.ReadCloser, error), 100)
	// The form's key makes the body be read before it is known that there is no key.
	keys := []oncehttp.KeySource{oncehttp.FromHeader("Idempotency-Key"), oncehttp.FromForm("key")}
	s := newSite(t, onceward.Operation{}, &oncehttp.Options{Keys: keys}, func(w http.ResponseWriter, r *http.Request) {
		if r.GetBody != nil {
			kept <- r.GetBody
		}
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	want := map[string]int{}
	for i, size := range []int{0, 1, 511, 512, 513, 1023, 1024, 1025, 4094, 4095, 4096, 4097, 8191, 8192, 65536, 100000} {
		for _, framing := range []string{"length", "chunked"} {
			body := strings.Repeat(fmt.Sprint(framing[0], i, " "), size)[:size]
			for _, k := range []string{fmt.Sprint(framing, size), fmt.Sprint(framing, size), ""} { // a first, its duplicate, one without a key
				var content io.Reader = strings.NewReader(body)
				if framing == "chunked" {
					content = io.MultiReader(content)
				}
				r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, content)
				r.Header.Set("Idempotency-Key", k)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if string(got) != body {
					t.Errorf("%s of %d bytes: came back as %d", framing, size, len(got))
				}
			}
			if size > 0 {
				want[body] = 2
			}
		}
	}
	close(kept)
	for again := range kept {
		body, _ := again()
		got, _ := io.ReadAll(body)
		want[string(got)]--
	}
	for body, n := range want {
		if n != 0 {
			t.Errorf("a body of %d bytes that was kept twice is another now, %d times", len(body), n)
		}
	}
}

// readerFunc is a request body.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestReaderThatGaveUpSpoilsNoOther: one that goes on writing after it returned an error, as readers with a timeout of
// their own may, does not write into the next request.
func TestReaderThatGaveUpSpoilsNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	post := func(k string, content readerFunc) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/x", content)
		r.Header.Set("Idempotency-Key", k)
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, r)
		return w
	}
	var late []byte
	for i := range 20 {
		if w := post(fmt.Sprint("gave up ", i), func(p []byte) (int, error) { late = p; return 0, errors.New("too slow") }); w.Code != 400 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		w := post(fmt.Sprint("next ", i), func(p []byte) (int, error) {
			n := copy(p, "right")
			copy(late, "WRONG")
			return n, io.EOF
		})
		if w.Body.String() != "right" {
			t.Fatalf("it got %q", w.Body)
		}
	}
}
