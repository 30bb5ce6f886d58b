package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

// TestResolveAt: a request whose outcome is unknown, asked about, and what its duplicate gets then.
func TestResolveAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc // nil: nobody is there
		err    string           // in the resolver's error
		status int              // of a duplicate afterwards
		body   string
		calls  int // of the upstream
	}{
		{"done", say("done", 201, "receipt 7"), "", 201, "receipt 7", 1},
		{"done without a body", say("done", 204, ""), "", 204, "", 1},
		{"final", say("final", 422, "no funds"), "", 422, "no funds", 1},
		{"not done", say("not-done", 404, "none"), "", 200, "paid", 2},
		{"unknown", say("unknown", 200, ""), "", 409, "", 1},
		{"no word", say("", 200, "paid"), "does not say Onceward-Outcome", 409, "", 1},
		{"not found", say("", 404, ""), "HTTP status 404", 409, "", 1},
		{"a server's failure", say("", 500, ""), "HTTP status 500", 409, "", 1},
		{"done with a server's failure", say("done", 502, "paid"), "HTTP status 502", 409, "", 1},
		{"final with a server's failure", say("final", 500, "no funds"), "HTTP status 500", 409, "", 1},
		{"not done with a server's failure", say("not-done", 503, ""), "HTTP status 503", 409, "", 1},
		{"unknown with a server's failure", say("unknown", 503, ""), "", 409, "", 1},
		{"another word", say("perhaps", 200, ""), "perhaps", 409, "", 1},
		{"two words", func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Onceward-Outcome"] = []string{"done", "not-done"}
			say("", 200, "paid")(w, r)
		}, "done, not-done", 409, "", 1},
		{"led elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "HTTP status 302", 409, "", 1},
		{"too long", say("done", 200, strings.Repeat("x", 1001)), "longer than 1000 bytes", 409, "", 1},
		{"broken off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Onceward-Outcome", "done")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		}, "broke off", 409, "", 1},
		{"nobody is there", nil, "refused", 409, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked *http.Request
			office := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r
				c.answer(w, r)
			}))
			defer office.Close()
			if c.answer == nil {
				office.Close()
			}
			calls := 0
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if calls++; calls == 1 {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				_, _ = io.WriteString(w, "paid")
			}))
			defer upstream.Close()

			mem := memstore.New(nil)
			guard, err := onceward.New(mem, &onceward.Options{SingleTenant: true})
			if err != nil {
				t.Fatal(err)
			}
			u, err := gateway.CheckResolveURL(office.URL + "/outcome?of=pay")
			if err != nil {
				t.Fatal(err)
			}
			op, err := guard.Define(onceward.Operation{Name: "pay", Resolve: gateway.ResolveAt(u, &gateway.ResolveOptions{MaxAnswer: 1000})})
			if err != nil {
				t.Fatal(err)
			}
			target, _ := url.Parse(upstream.URL)
			h, err := gateway.New(&gateway.Options{Upstream: target, Default: gateway.Route{Op: op}})
			if err != nil {
				t.Fatal(err)
			}
			post := func() *httptest.ResponseRecorder {
				r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader("{}"))
				r.Header.Set("Idempotency-Key", `"order 42"`)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			if w := post(); w.Code != http.StatusBadGateway {
				t.Fatalf("the first: %d", w.Code)
			}
			page, err := mem.Scan(t.Context(), driver.Scan{Limit: 10, Which: driver.Unclear})
			if err != nil || len(page.Snapshots) != 1 {
				t.Fatalf("%d are unknown, %v", len(page.Snapshots), err)
			}
			mem.Shift(page.Snapshots[0].Record.ID, time.Hour)
			snap, _ := mem.Get(t.Context(), page.Snapshots[0].Record.ID)
			called, _, err := guard.Resolve(t.Context(), snap)
			if !called || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("asked %v, %v", called, err)
			}
			if c.answer != nil {
				for name, want := range map[string]string{"Idempotency-Key": "order 42", "Onceward-Operation": "pay", "Onceward-Attempt": "1", "Onceward-Caller": ""} {
					if got := asked.Header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				if at, err := time.Parse(time.RFC3339Nano, asked.Header.Get("Onceward-Begun")); err != nil || !at.Equal(snap.Record.ClaimedAt) {
					t.Errorf("begun: %v %v", at, err)
				}
				if asked.Method != http.MethodGet || asked.URL.RequestURI() != "/outcome?of=pay" {
					t.Errorf("%s %s", asked.Method, asked.URL)
				}
			}
			w := post()
			if w.Code != c.status || c.status != 409 && w.Body.String() != c.body || calls != c.calls {
				t.Errorf("then %d %q, the upstream was called %d times", w.Code, w.Body, calls)
			}
			if c.status == 201 && (w.Header().Get("Location") != "/receipts/7" || w.Header().Get("Onceward-Outcome") != "" || w.Header().Get("Onceward-Reason") != "" || w.Header().Get("Keep-Alive") != "" || w.Header().Get("Idempotency-Status") != "replayed") {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
}

func say(word string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if word != "" {
			w.Header().Set("Onceward-Outcome", word)
		}
		w.Header().Set("Onceward-Reason", "asked the bank")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Location", "/receipts/7")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestResolveTellsTheScope, percent-encoded: keys belong to callers.
func TestResolveTellsTheScope(t *testing.T) {
	t.Parallel()
	var tenant, caller string
	office := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant, caller = r.Header.Get("Onceward-Tenant"), r.Header.Get("Onceward-Caller")
		w.Header().Set("Onceward-Outcome", "unknown")
	}))
	defer office.Close()
	u, err := gateway.CheckResolveURL(office.URL)
	if err != nil {
		t.Fatal(err)
	}
	q := onceward.Question{Operation: "pay", Scope: onceward.Scope{Tenant: "店 7\n", Caller: "a&b+c"}}
	if _, err := gateway.ResolveAt(u, nil)(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if tenant != "%E5%BA%97%207%0A" || caller != "a%26b%2Bc" {
		t.Errorf("%q %q", tenant, caller)
	}
}

// question asks a resolver about a request with a key.
func question(t *testing.T, at string, o *gateway.ResolveOptions, k string) error {
	t.Helper()
	u, err := gateway.CheckResolveURL(at)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := key.Parse(k)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gateway.ResolveAt(u, o)(t.Context(), onceward.Question{Operation: "pay", Key: parsed, Attempt: 1})
	if err == nil || a.String() != "still_unknown" {
		t.Fatalf("%v, %v", a, err)
	}
	return err
}

// TestQuestionIsSentOnce, in the form in which the key came: net/http would send a GET again when a kept connection dies.
func TestQuestionIsSentOnce(t *testing.T) {
	t.Parallel()
	var dies atomic.Bool
	u := newWire(t, func(string) string {
		if dies.Load() {
			return ""
		}
		return "HTTP/1.1 200 OK\r\nOnceward-Outcome: unknown\r\nContent-Length: 0\r\n\r\n"
	})
	at, err := gateway.CheckResolveURL(u.url() + "/outcome")
	if err != nil {
		t.Fatal(err)
	}
	ask := gateway.ResolveAt(at, nil)
	for _, k := range []string{"K", "a,b", "(x", `"x"`} {
		parsed, err := key.Parse(k)
		if err != nil {
			t.Fatal(err)
		}
		dies.Store(false)
		if _, err := ask(t.Context(), onceward.Question{Key: parsed}); err != nil { // a connection could be kept
			t.Fatal(err)
		}
		dies.Store(true)
		before := len(u.of("GET", "/outcome"))
		if _, err := ask(t.Context(), onceward.Question{Key: parsed}); err == nil {
			t.Fatal("a connection that died answered")
		}
		heads := u.of("GET", "/outcome")[before:]
		if len(heads) != 1 {
			t.Fatalf("%s: asked %d times", k, len(heads))
		}
		lines := field(heads[0], "Idempotency-Key")
		if got, err := key.ParseHeader(lines); err != nil || got != parsed || lines[0] != parsed.HeaderValue() {
			t.Errorf("%s: sent as %q, %v", k, lines, err)
		}
		if got := slices.Concat(field(heads[0], "Onceward-Tenant"), field(heads[0], "Onceward-Caller")); got != nil {
			t.Errorf("a scope that is none was sent: %q", got)
		}
	}
}

// TestQuestionIsBounded in time, whoever asks, whether it is the head that does not come or the body.
func TestQuestionIsBounded(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	office := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			say("done", 200, "half")(w, r)
			_ = http.NewResponseController(w).Flush()
		}
		<-hold
	}))
	defer office.Close()
	defer close(hold)
	for _, path := range []string{"/head", "/body"} {
		if err := question(t, office.URL+path, &gateway.ResolveOptions{Timeout: 50 * time.Millisecond}, "K"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestQuestionTellsNoSecrets: its errors are logged.
func TestQuestionTellsNoSecrets(t *testing.T) {
	t.Parallel()
	office := httptest.NewServer(http.NotFoundHandler())
	office.Close()
	err := question(t, office.URL+"/outcome?token=secret", nil, "hidden-key")
	if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, "hidden") || !strings.Contains(text, strings.TrimPrefix(office.URL, "http://")) {
		t.Error(text)
	}
}

func TestCheckResolveURL(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "/outcome", "ftp://x/", "http://", "http://me:secret@x/", "http://x/#f", "http://x:y/", "http://:80/", "http:x", "http://x/#", "http://me:secret@x:y/"} {
		if _, err := gateway.CheckResolveURL(bad); err == nil {
			t.Errorf("%q can be asked", bad)
		} else if errors.Unwrap(err) != nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
