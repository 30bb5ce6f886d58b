package oncehttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// site is a guarded handler behind a real server.
type site struct {
	*httptest.Server
	runs atomic.Int64
	op   *onceward.Op
}

func newSite(t *testing.T, o onceward.Operation, opts *oncehttp.Options, h http.HandlerFunc) *site {
	t.Helper()
	return siteOn(t, memstore.New(nil), o, opts, h)
}

// answer is what a client saw.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *site) do(t *testing.T, method, path, key, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
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

func (s *site) wantRuns(t *testing.T, n int64) {
	t.Helper()
	if got := s.runs.Load(); got != n {
		t.Fatalf("the handler ran %d times, want %d", got, n)
	}
}

func TestFirstAndReplayAreEqual(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv; charset=iso-8859-1")
		w.Header().Set("Set-Cookie", "sid=SECRET")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "a,b\n")
		_, _ = io.WriteString(w, "c\n")
	})
	first := s.do(t, "POST", "/pay?b=2&a=1", "k", `{"a":1,"b":2}`, "Content-Type", "application/json")
	again := s.do(t, "POST", "/pay?a=1&b=2", `"k"`, `{"b":2.0, "a":1}`, "Content-Type", "application/json")
	s.wantRuns(t, 1)
	if first.status != 201 || again.status != 201 || first.body != "a,b\nc\n" || again.body != first.body {
		t.Fatalf("%+v\n%+v", first, again)
	}
	if ct := again.header.Get("Content-Type"); ct != "text/csv; charset=iso-8859-1" {
		t.Errorf("content type %q", ct)
	}
	if first.header.Get("Set-Cookie") == "" || again.header.Get("Set-Cookie") != "" {
		t.Error("a cookie is for its first client alone")
	}
	if again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotency-Status") != "executed" || first.header.Get("Idempotency-Expires") == "" {
		t.Errorf("headers %v %v", first.header, again.header)
	}
	if other := s.do(t, "POST", "/pay?a=1&b=2", "k", `{"b":3,"a":1}`, "Content-Type", "application/json"); other.status != 422 || !strings.Contains(other.body, `"retry":"new_key"`) {
		t.Errorf("another body: %+v", other)
	}
}

func TestStormOfOneKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)}, nil, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "paid")
	})
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			if a := s.do(t, "POST", "/pay", "k", "x"); a.status != 200 || a.body != "paid" {
				t.Errorf("%+v", a)
			}
		})
	}
	wg.Wait()
	s.wantRuns(t, 1)
}

func TestClientHangsUp(t *testing.T) {
	t.Parallel()
	entered, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := newSite(t, onceward.Operation{OnInFlight: onceward.Wait(time.Minute)}, nil, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-onceward.CallerGone(r.Context())
		if r.Context().Err() != nil {
			t.Error("the work was cancelled with its client")
		}
		<-release
		_, _ = io.WriteString(w, "paid")
		close(ended)
	})
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/pay", strings.NewReader("x"))
	r.Header.Set("Idempotency-Key", "k")
	ctx, hangUp := contextWithCancel(t)
	go func() {
		<-entered
		hangUp()
	}()
	if _, err := http.DefaultClient.Do(r.WithContext(ctx)); err == nil { //nolint:bodyclose // there is no answer
		t.Fatal("the client got an answer")
	}
	close(release)
	<-ended
	if a := s.do(t, "POST", "/pay", "k", "x"); a.body != "paid" || a.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("%+v", a)
	}
	s.wantRuns(t, 1)
}
