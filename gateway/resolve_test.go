package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
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
		{"not done, from a rate limiter", say("not-done", 429, ""), "HTTP status 429", 409, "", 1},
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
			l := lose(t, office.URL+"/outcome?of=pay")
			snap := l.snap
			called, _, err := l.guard.Resolve(t.Context(), snap)
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
			w := l.post(t)
			if calls := int(l.calls.Load()); w.status != c.status || c.status != 409 && w.body != c.body || calls != c.calls {
				t.Errorf("then %+v, the upstream was called %d times", w, calls)
			}
		})
	}
}

// lost is a gateway whose service broke off in the middle of a request, and did what nobody knows.
type lost struct {
	guard *onceward.Guard
	url   string
	snap  driver.Snapshot
	calls atomic.Int64 // of the service
}

// lose makes one, and moves its record to where it may be asked about.
func lose(t *testing.T, office string) *lost {
	t.Helper()
	l := &lost{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if l.calls.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(w, "paid")
	}))
	t.Cleanup(service.Close)
	mem := memstore.New(nil)
	var err error
	if l.guard, err = onceward.New(mem, &onceward.Options{SingleTenant: true}); err != nil {
		t.Fatal(err)
	}
	u, err := gateway.CheckResolveURL(office)
	if err != nil {
		t.Fatal(err)
	}
	op, err := l.guard.Define(onceward.Operation{Name: "pay", Resolve: gateway.ResolveAt(u, &gateway.ResolveOptions{MaxAnswer: 1000})})
	if err != nil {
		t.Fatal(err)
	}
	target, _ := url.Parse(service.URL)
	h, err := gateway.New(&gateway.Options{Upstream: target, Default: gateway.Route{Op: op}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	own := httptest.NewServer(h)
	t.Cleanup(own.Close)
	l.url = own.URL
	if a := l.post(t); a.status != http.StatusBadGateway || a.header.Get("Idempotency-Status") != "unknown" {
		t.Fatalf("the first: %+v", a)
	}
	page, err := mem.Scan(t.Context(), driver.Scan{Limit: 10, Which: driver.Unclear})
	if err != nil || len(page.Snapshots) != 1 {
		t.Fatalf("%d are unknown, %v", len(page.Snapshots), err)
	}
	mem.Shift(page.Snapshots[0].Record.ID, time.Hour)
	if l.snap, err = mem.Get(t.Context(), page.Snapshots[0].Record.ID); err != nil {
		t.Fatal(err)
	}
	return l
}

// post sends the request of the record.
func (l *lost) post(t *testing.T) answer {
	t.Helper()
	a := send(t, http.MethodPost, l.url+"/pay", `"order 42"`, strings.NewReader("{}"))
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a
}

// TestAnswerIsReplayed byte for byte, with its status and the headers of its content, and no other.
func TestAnswerIsReplayed(t *testing.T) {
	t.Parallel()
	body := "\x1f\x8b\x00\r\n\xff receipt \u4e03\n"
	for word, status := range map[string]int{"done": http.StatusCreated, "final": http.StatusUnprocessableEntity} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			office := newWire(t, func(string) string { // net/http would not send all of these
				return fmt.Sprintf("HTTP/1.1 %d Said\r\n", status) + strings.Join([]string{
					"Onceward-Outcome: " + word, "Onceward-Reason: asked the bank", "Content-Type: application/x-receipt", "Location: /receipts/7",
					`ETag: "7"`, "Link: </a>; rel=next", "Connection: X-Hop,\tlink", "X-Hop: 1", "Keep-Alive: timeout=5",
					"Proxy-Authenticate: Basic", "Set-Cookie: session=1", "WWW-Authenticate: Basic", "X-Request-Id: office",
					"Idempotency-Status: executed", "Trailer: X-Sum", "Transfer-Encoding: chunked",
				}, "\r\n") + fmt.Sprintf("\r\n\r\n3\r\n%s\r\n%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", body[:3], len(body)-3, body[3:])
			})
			l := lose(t, office.url())
			if asked, settled, err := l.guard.Resolve(t.Context(), l.snap); !asked || !settled || err != nil {
				t.Fatal(asked, settled, err)
			}
			for range 2 {
				a := l.post(t)
				if a.status != status || a.body != body {
					t.Errorf("%d %q", a.status, a.body)
				}
				for name, want := range map[string]string{
					"Content-Type": "application/x-receipt", "Location": "/receipts/7", "Etag": `"7"`,
					"Idempotency-Status": "replayed", "Idempotent-Replayed": "true", "Content-Length": strconv.Itoa(len(body)),
				} {
					if got := a.header.Values(name); len(got) != 1 || got[0] != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				for _, name := range []string{
					"Link", "X-Hop", "Keep-Alive", "Proxy-Authenticate", "Trailer", "X-Sum", "Transfer-Encoding", "Set-Cookie", "Www-Authenticate",
					"Onceward-Outcome", "Onceward-Reason",
				} {
					if got := a.header.Values(name); got != nil {
						t.Errorf("%s: %q went on", name, got)
					}
				}
				if a.header.Get("X-Request-Id") == "office" {
					t.Error("the answer's request id went on")
				}
			}
			if n := l.calls.Load(); n != 1 {
				t.Errorf("the service was called %d times", n)
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
func question(ctx context.Context, t *testing.T, at string, o *gateway.ResolveOptions, k string) error {
	t.Helper()
	u, err := gateway.CheckResolveURL(at)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := key.Parse(k)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gateway.ResolveAt(u, o)(ctx, onceward.Question{Operation: "pay", Key: parsed, Attempt: 1})
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
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, path := range []string{"/head", "/body"} {
		err := question(ctx, t, office.URL+path, &gateway.ResolveOptions{Timeout: 50 * time.Millisecond}, "K")
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestQuestionTellsNoSecrets: its errors are logged.
func TestQuestionTellsNoSecrets(t *testing.T) {
	t.Parallel()
	office := httptest.NewServer(http.NotFoundHandler())
	office.Close()
	err := question(t.Context(), t, office.URL+"/outcome?token=secret", nil, "hidden-key")
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
