package oncehttp_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// TestWhatEndsEarlyIsCounted: each request is one event of few words, whatever the client sent.
func TestWhatEndsEarlyIsCounted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []onceward.Event
	g, err := onceward.New(memstore.New(nil), &onceward.Options{Observer: func(e onceward.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == onceward.EventUnclaimed || e.Kind == onceward.EventDecision {
			heard = append(heard, e)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		method  string
		key     string
		caller  string
		body    io.Reader
		opts    oncehttp.Options
		want    string
		status  int
		decides bool
	}{
		{name: "keyless", caller: "ann", want: "none", status: 200},
		{name: "keyless, by its body", caller: "ann", opts: oncehttp.Options{Keys: []oncehttp.KeySource{oncehttp.FromJSON("/id")}}, want: "none", status: 200},
		{name: "GET", method: "GET", key: "k", want: "ignored", status: 200},
		{name: "GET without a key", method: "GET", status: 200},
		{name: "key missing", opts: oncehttp.Options{RequireKey: true}, want: "key_missing", status: 400},
		{name: "key invalid", key: strings.Repeat("x", 256), want: "key_invalid", status: 400},
		{name: "no caller", key: "k", want: "scope_missing", status: 400},
		{name: "body too large", key: "k", caller: "ann", body: strings.NewReader("12345"), opts: oncehttp.Options{MaxBody: 4}, want: "body_too_large", status: 413},
		{name: "full", key: "k", caller: "ann", body: strings.NewReader("12345"), opts: oncehttp.Options{Budget: oncehttp.NewBudget(4)}, want: "too_many", status: 503},
		{name: "body cut", key: "k", caller: "ann", body: iotest.ErrReader(io.ErrUnexpectedEOF), want: "body_cut", status: 400},
		{name: "run", key: "k", caller: "ann", want: "executed", status: 200, decides: true},
		{name: "replayed", key: "k", caller: "ann", want: "replayed", status: 200, decides: true},
	} {
		c.opts.Logger = slog.New(slog.DiscardHandler)
		c.opts.Scope = func(r *http.Request) (onceward.Scope, error) { return onceward.Scope{Caller: c.caller}, nil }
		once, err := oncehttp.New(op, &c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if c.method == "" {
			c.method = "POST"
		}
		if c.body == nil {
			c.body = strings.NewReader("")
		}
		r := httptest.NewRequest(c.method, "/x", io.MultiReader(c.body))
		if c.key != "" {
			r.Header.Set("Idempotency-Key", c.key)
		}
		w := httptest.NewRecorder()
		once(respond(200, "paid")).ServeHTTP(w, r)
		kind := onceward.EventUnclaimed
		if c.decides {
			kind = onceward.EventDecision
		}
		switch {
		case w.Code != c.status:
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		case c.want == "" && len(heard) == 0:
		case len(heard) != 1 || heard[0].Kind != kind || heard[0].Outcome != c.want || heard[0].Operation != "pay":
			t.Errorf("%s: heard %+v", c.name, heard)
		case !c.decides && w.Code >= 400 && c.want != "key_missing" && heard[0].Err == nil:
			t.Errorf("%s: why is not told", c.name)
		}
		heard = heard[:0]
	}
}

// TestScopeErrorStaysHere: it may name hosts, tables or tokens. It is logged, once for each request.
func TestScopeErrorStaysHere(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]func(*http.Request) (onceward.Scope, error){
		"error": func(*http.Request) (onceward.Scope, error) {
			return onceward.Scope{}, errors.New("SECRET-MARK\ninjected")
		},
		"panic": func(*http.Request) (onceward.Scope, error) { panic("SECRET-MARK") },
		"too long": func(*http.Request) (onceward.Scope, error) {
			return onceward.Scope{Tenant: strings.Repeat("SECRET-MARK", 99)}, nil
		},
	} {
		var log bytes.Buffer
		s := newSite(t, onceward.Operation{}, &oncehttp.Options{Scope: scope, Logger: slog.New(slog.NewTextHandler(&log, nil))}, respond(200, "paid"))
		a := s.do(t, "POST", "/x", "K", "x")
		if a.status != 400 || !strings.Contains(a.body, `"code":"scope_missing"`) || !strings.Contains(a.body, `"detail":"the caller could not be named"`) {
			t.Errorf("%s: %+v", name, a)
		}
		if strings.Contains(a.body, "SECRET") || strings.Contains(a.body, "tenant") {
			t.Errorf("%s: the client reads %s", name, a.body)
		}
		s.Close()
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "operation=http") || name != "too long" && !strings.Contains(text, "SECRET-MARK") {
			t.Errorf("%s: log %q", name, text)
		}
		s.wantRuns(t, 0)
	}
}
