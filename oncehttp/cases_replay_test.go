package oncehttp_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

// TestCaseB020EveryStatus: a replay has the first status, from disk too.
func TestCaseB020EveryStatus(t *testing.T) {
	t.Parallel()
	statuses := []int{200, 201, 202, 204, 207, 226, 299, 301, 303, 304, 400, 402, 404, 409, 410, 418, 422, 451, 501, 505}
	path := filepath.Join(t.TempDir(), "o.db")
	h := func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.URL.Query().Get("status"), &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "body")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(s *site, status int) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", fmt.Sprintf("%s/x?status=%d", s.URL, status), strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", fmt.Sprint("K", status))
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	first := siteOn(t, teststore.OpenFile(t, path), onceward.Operation{}, nil, h)
	bodies := map[int]string{}
	for _, status := range statuses {
		got, body := ask(first, status)
		if got != status {
			t.Fatalf("%d came as %d", status, got)
		}
		bodies[status] = body
	}
	first.wantRuns(t, int64(len(statuses)))
	second := siteOn(t, teststore.OpenFile(t, path), onceward.Operation{}, nil, h)
	for _, s := range []*site{first, second} {
		for _, status := range statuses {
			if got, body := ask(s, status); got != status || body != bodies[status] {
				t.Errorf("%d %q was replayed as %d %q", status, bodies[status], got, body)
			}
		}
	}
	second.wantRuns(t, 0)
}

// TestCaseB022LargeBodyIsNeverCut: the first client gets it whole, duplicates are told that it is done.
func TestCaseB022LargeBodyIsNeverCut(t *testing.T) {
	t.Parallel()
	body := "123456789\xe8\xb4\xad"
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, &oncehttp.Options{MaxResult: 10}, respond(201, body))
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 || a.body != body {
			t.Fatalf("%+v", a)
		}
		a := s.do(t, "POST", "/x", "K", "x")
		if a.status != 201 || !strings.Contains(a.body, "result_not_kept") || a.header.Get("Content-Type") != "application/problem+json" {
			t.Fatalf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}

func TestCaseB026TypeIsExact(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/none" {
				w.Header()["Content-Type"] = nil
			} else {
				w.Header().Set("Content-Type", "text/csv; charset=iso-8859-1")
			}
			_, _ = io.WriteString(w, "<html>")
		})
		for _, path := range []string{"/csv", "/none"} {
			first, again := s.do(t, "POST", path, path, "x"), s.do(t, "POST", path, path, "x")
			_, has := again.header["Content-Type"]
			if first.header.Get("Content-Type") != again.header.Get("Content-Type") || path == "/none" && has {
				t.Errorf("%s: %v then %v", path, first.header["Content-Type"], again.header["Content-Type"])
			}
		}
	})
}

// TestCaseB028NoBodyWhereNoneBelongs: 103 passes, 204 stays empty, and the connection stays readable.
func TestCaseB028NoBodyWhereNoneBelongs(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
			if _, err := w.Write([]byte("abc")); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("write: %v", err)
			}
			w.WriteHeader(http.StatusTeapot)
		})
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		br := bufio.NewReader(c)
		for i := range 3 {
			_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x\r\nIdempotency-Key: K\r\nContent-Length: 1\r\n\r\nx")
			for {
				resp, err := http.ReadResponse(br, &http.Request{Method: "POST"}) //nolint:bodyclose // the connection is read on
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				if resp.StatusCode == http.StatusEarlyHints {
					continue
				}
				b, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != 204 || len(b) != 0 || resp.Header.Get("Content-Length") != "" {
					t.Fatalf("answer %d: %d %q %v", i, resp.StatusCode, b, resp.Header)
				}
				break
			}
		}
		s.wantRuns(t, 1)
		if a := s.do(t, "HEAD", "/x", "H", ""); a.header.Get("Idempotency-Status") != "ignored" {
			t.Errorf("a keyed HEAD is not claimed: %+v", a)
		}
	})
}

// TestCaseB033CookiesAreNotKept: neither replayed nor at rest.
func TestCaseB033CookiesAreNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := siteOn(t, teststore.OpenFile(t, filepath.Join(dir, "o.db")), onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Set-Cookie", "Set-Cookie2", "Authentication-Info", "Www-Authenticate", "Proxy-Authenticate", "X-Ratelimit-Remaining"} {
			w.Header().Set(name, "sid=SECRET-MARK")
		}
		w.WriteHeader(http.StatusCreated)
	})
	if a := s.do(t, "POST", "/x", "K", "x"); a.header.Get("Set-Cookie") == "" {
		t.Errorf("the first client gets its cookie: %+v", a)
	}
	again := s.do(t, "POST", "/x", "K", "x")
	for name, values := range again.header {
		if strings.Contains(strings.Join(values, " "), "SECRET-MARK") {
			t.Errorf("%s was replayed", name)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("SECRET-MARK")) {
			t.Errorf("%s holds it (%v)", f, err)
		}
	}
}

func TestOriginIsForItsOriginAlone(t *testing.T) {
	t.Parallel()
	s := siteOn(t, memstore.New(nil), onceward.Operation{}, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.WriteHeader(http.StatusCreated)
	})
	s.do(t, "POST", "/x", "K", "x", "Origin", "https://a.example")
	if a := s.do(t, "POST", "/x", "K", "x", "Origin", "https://a.example"); a.header.Get("Access-Control-Allow-Origin") != "https://a.example" {
		t.Errorf("%+v", a)
	}
	if a := s.do(t, "POST", "/x", "K", "x", "Origin", "https://b.example"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%+v", a)
	}
}

// TestAnswerShorterThanDeclared: an answer that is not whole is never complete.
func TestAnswerShorterThanDeclared(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "cut")
		})
		if a, err := s.try(t, "POST", "/x", "K", "x"); err == nil {
			t.Errorf("the cut answer looked whole: %+v", a)
		}
		if a := s.do(t, "POST", "/x", "K", "x"); a.status != 409 || !strings.Contains(a.body, "outcome_unknown") {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}
