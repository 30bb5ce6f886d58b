package oncehttp_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

// around puts the site behind a server of its own, with a handler around its handler.
func (s *site) around(t *testing.T, wrap func(http.Handler) http.Handler) {
	t.Helper()
	s.Server = httptest.NewServer(wrap(s.Config.Handler))
	t.Cleanup(s.Close)
}

func id(key string) driver.ID { return driver.Identify(driver.Scope{}, "http", key) }

func TestHeadersAroundAreNotDoubled(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Accept")
			w.WriteHeader(http.StatusCreated)
		})
		s.around(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
				w.Header().Set("Vary", "Origin")
				next.ServeHTTP(w, r)
			})
		})
		for _, origin := range []string{"https://a.example", "https://a.example", "https://b.example"} {
			a := s.do(t, "POST", "/x", "K", "x", "Origin", origin)
			if got := a.header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != origin {
				t.Errorf("allowed: %q", got)
			}
			if got := strings.Join(a.header.Values("Vary"), ","); got != "Origin,Accept" {
				t.Errorf("vary: %q", got)
			}
		}
		s.wantRuns(t, 1)
	})
}

func TestOutcomeHeaderNeverLeaves(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
		oncehttp.SetOutcome(w, oncehttp.Final)
		switch r.URL.Path {
		case "/silent":
		case "/hint":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		case "/flush":
			_ = http.NewResponseController(w).Flush()
		case "/copy":
			_, _ = io.Copy(w, strings.NewReader("x"))
		default:
			_, _ = io.WriteString(w, "x")
		}
	})
	for _, path := range []string{"/silent", "/hint", "/flush", "/copy", "/write"} {
		for _, c := range []struct{ method, key, word string }{{"POST", "K" + path, "executed"}, {"POST", "", "none"}, {"GET", "", ""}, {"GET", "K", "ignored"}} {
			if a := s.do(t, c.method, path, c.key, ""); a.header.Get("Onceward-Outcome") != "" || a.header.Get("Idempotency-Status") != c.word {
				t.Errorf("%s %s: %v", c.method, path, a.header)
			}
		}
	}
}

func TestUnguardedKeepsWhatTheWriterCan(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
		_ = rw.Flush()
		_ = c.Close()
	})
	if a := s.do(t, "GET", "/x", "K", ""); a.body != "hi" {
		t.Errorf("%+v", a)
	}
}

// TestGuardedWriter: deadlines go through; what could not be replayed is not offered.
func TestGuardedWriter(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		if err := errors.Join(rc.SetReadDeadline(time.Now().Add(time.Hour)), rc.SetWriteDeadline(time.Now().Add(time.Hour)), rc.EnableFullDuplex()); err != nil {
			t.Error(err)
		}
		if _, _, err := rc.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
	})
	s.do(t, "POST", "/x", "K", "x")
	s.wantRuns(t, 1)
}

func TestHeadersAfterWriteHeaderAndTrailers(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusCreated)
			w.Header().Set("Content-Type", "text/late")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Sum", "1")
			w.Header().Set(http.TrailerPrefix+"X-More", "2")
		})
		for i := range 2 {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("x"))
			r.Header.Set("Idempotency-Key", "K")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 201 || string(b) != "body" || resp.Header.Get("Content-Type") == "text/late" || resp.Header.Get("X-Sum") != "" {
				t.Errorf("%d %q %v", resp.StatusCode, b, resp.Header)
			}
			if first := resp.Trailer.Get("X-Sum") == "1" && resp.Trailer.Get("X-More") == "2"; first != (i == 0) {
				t.Errorf("answer %d has trailers %v", i, resp.Trailer)
			}
		}
	})
}

// TestDeclaredLength: what is sent and what is kept are the same bytes, and fewer than declared are no answer.
func TestDeclaredLength(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3")
			_, _ = io.WriteString(w, "ab")
			if r.URL.Path == "/over" {
				_, _ = io.WriteString(w, "c")
				if _, err := io.WriteString(w, "d"); !errors.Is(err, http.ErrContentLength) {
					t.Errorf("%v", err)
				}
			}
		})
		for range 2 {
			if a := s.do(t, "POST", "/over", "O", "x"); a.body != "abc" {
				t.Errorf("%+v", a)
			}
		}
		if a, err := s.try(t, "POST", "/under", "U", "x"); err == nil {
			t.Errorf("a cut answer came whole: %+v", a)
		}
		if a := s.do(t, "POST", "/under", "U", "x"); a.status != 409 || !strings.Contains(a.body, "outcome_unknown") {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 2)
	})
}

func TestStatusThatIsNone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 20, 101, 1000} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
				store := stores.Open(t)
				s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
					oncehttp.SetOutcome(w, oncehttp.Done)
					w.WriteHeader(status)
				})
				_, _ = s.try(t, "POST", "/x", "K", "x")
				if a := s.do(t, "POST", "/x", "K", "x"); a.status != 409 || !strings.Contains(a.body, "outcome_unknown") {
					t.Errorf("%+v", a)
				}
				s.wantRuns(t, 1)
			})
		})
	}
}

// TestPanicLeavesNothingBehind: who recovers answers with his own headers.
func TestPanicLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newSite(t, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "sid=1")
		oncehttp.SetOutcome(w, oncehttp.Done)
		w.WriteHeader(http.StatusCreated)
		panic("broken")
	})
	s.around(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Outer", "1")
			defer func() {
				_ = recover()
				w.WriteHeader(http.StatusInternalServerError)
			}()
			next.ServeHTTP(w, r)
		})
	})
	a := s.do(t, "POST", "/x", "K", "x")
	if a.status != 500 || a.header.Get("Set-Cookie") != "" || a.header.Get("Onceward-Outcome") != "" || a.header.Get("X-Outer") != "1" {
		t.Errorf("%+v", a)
	}
}

// TestSupersededGetsTheOtherAnswer: and nothing of its own, least of all a cookie.
func TestSupersededGetsTheOtherAnswer(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
		snap, err := store.Get(r.Context(), id("K"))
		if err != nil {
			t.Error(err)
		}
		rec := snap.Record
		rec.Owner, rec.Fence, rec.Status = driver.Owner{1}, rec.Fence+1, driver.Success
		rec.Result = driver.Result{Codec: "http", Meta: []byte("202\nContent-Type:text/plain"), Data: []byte("other")}
		rec.CompletedAt, rec.ExpiresAt = snap.Now, snap.Now.Add(time.Hour)
		store.Put(rec)
		w.Header().Set("Set-Cookie", "sid=1")
		w.Header().Set("Content-Type", "text/mine")
		w.WriteHeader(http.StatusCreated)
	})
	a := s.do(t, "POST", "/x", "K", "x")
	if a.status != 202 || a.body != "other" || a.header.Get("Set-Cookie") != "" || a.header.Get("Content-Type") != "text/plain" {
		t.Errorf("%+v", a)
	}
}

// lost is a client that hung up.
type lost struct{ *httptest.ResponseRecorder }

func (lost) Write([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestLongAnswerToALostClientIsDone(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 10}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4000")
			for range 4 {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					t.Error(err)
				}
			}
		})
		r := httptest.NewRequest("POST", "/x", strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", "K")
		s.Config.Handler.ServeHTTP(lost{httptest.NewRecorder()}, r)
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 200 || !strings.Contains(a.body, "result_not_kept") {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}

// TestStreamSaysWhatItKnows: in the headers as far as it is known then, in a trailer when recording failed.
func TestStreamSaysWhatItKnows(t *testing.T) {
	t.Parallel()
	store := faultstore.New(memstore.New(nil))
	g, _ := onceward.New(store, &onceward.Options{SingleTenant: true, FinishGrace: 20 * time.Millisecond})
	op, _ := g.Define(onceward.Operation{Name: "http"})
	once, _ := oncehttp.New(op, &oncehttp.Options{MaxResult: 10})
	status := http.StatusOK
	srv := httptest.NewServer(once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(make([]byte, 5000))
	})))
	s := &site{Server: srv, op: op}
	t.Cleanup(srv.Close)
	status = http.StatusInternalServerError
	if a := s.do(t, "POST", "/x", "K1", "x"); a.header.Get("Idempotency-Status") != "unknown" || len(a.body) != 5000 {
		t.Errorf("%+v", a)
	}
	status = http.StatusOK
	store.Refuse(faultstore.Finish, -1)
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("x"))
	r.Header.Set("Idempotency-Key", "K2")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if len(b) != 5000 || resp.Trailer.Get("Idempotency-Status") != "unrecorded" {
		t.Errorf("%d bytes, %v, trailer %v", len(b), resp.Header, resp.Trailer)
	}
	store.Refuse(faultstore.Finish, 0)
	if _, err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRespondSpeaksTheSendersForm(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 10, Respond: func(w http.ResponseWriter, r *http.Request, p oncehttp.Problem) bool {
			if r.Header.Get("X-Plain") != "" {
				return false
			}
			w.WriteHeader(p.Status)
			_, _ = io.WriteString(w, "FAIL "+string(p.Code))
			return true
		}}, respond(201, "more than is kept"))
		s.do(t, "POST", "/x", "K", "x")
		if a := s.do(t, "POST", "/x", "K", "y"); a.status != 422 || a.body != "FAIL mismatch" || a.header.Get("Idempotency-Status") != "mismatch" {
			t.Errorf("%+v", a)
		}
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 || a.body != "FAIL result_not_kept" || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%+v", a)
		}
		a := s.do(t, "POST", "/x", "K", "y", "X-Plain", "1")
		var p oncehttp.Problem
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Code != "mismatch" || p.Retry != "new_key" || p.Status != 422 || p.Type != "urn:onceward:problem:mismatch" {
			t.Errorf("%+v %v", a, err)
		}
	})
}

// TestRetryAfter is at least a second and never beyond what is left of the lease.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{300 * time.Millisecond, 2500 * time.Millisecond, time.Minute} {
		entered, release := make(chan struct{}), make(chan struct{})
		s := newSite(t, onceward.Operation{Lease: lease}, nil, func(http.ResponseWriter, *http.Request) {
			close(entered)
			<-release
		})
		first := make(chan answer, 1)
		go func() { first <- s.do(t, "POST", "/x", "K", "x") }()
		<-entered
		a := s.do(t, "POST", "/x", "K", "x")
		after, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != 409 || err != nil || after < 1 || after > max(1, int(lease/time.Second)) {
			t.Errorf("lease %v: %d, retry after %q", lease, a.status, a.header.Get("Retry-After"))
		}
		close(release)
		<-first
	}
}

func TestCaseB017DamagedMeta(t *testing.T) {
	t.Parallel()
	for _, meta := range []string{"", "x", "20", "99", "2000", "200\nSet-Cookie:a", "200\nnonsense", "+200"} {
		store := memstore.New(nil)
		s := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
		s.do(t, "POST", "/x", "K", "x")
		snap, err := store.Get(t.Context(), id("K"))
		if err != nil {
			t.Fatal(err)
		}
		snap.Record.Result.Meta = []byte(meta)
		store.Put(snap.Record)
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 500 || !strings.Contains(a.body, "corrupt_record") || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%q: %+v", meta, a)
		}
		s.wantRuns(t, 1)
	}
}

// TestHalfARequestRunsNothing: the sender broke off in the middle of the body.
func TestHalfARequestRunsNothing(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	s := siteOn(t, store, onceward.Operation{}, nil, respond(201, "paid"))
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x\r\nIdempotency-Key: K\r\nContent-Length: 10\r\n\r\nhalf")
	_ = c.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(c)
	_ = c.Close()
	if !strings.Contains(string(b), " 400 ") || !strings.Contains(string(b), `"retry":"same_key"`) || !strings.Contains(string(b), `"about:blank"`) || strings.Contains(string(b), `"code"`) {
		t.Errorf("%q", b)
	}
	s.wantRuns(t, 0)
	if _, err := store.Get(t.Context(), id("K")); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("a record: %v", err)
	}
}
