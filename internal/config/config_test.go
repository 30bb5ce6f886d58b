package config_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/internal/config"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

func load(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(file)
}

// serve is the gateway of a file's routes, before an upstream that counts what it runs.
func serve(t *testing.T, text string) (gatewayURL string, runs *atomic.Int64) {
	t.Helper()
	runs = new(atomic.Int64)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		_, _ = io.WriteString(w, "ran")
	}))
	t.Cleanup(up.Close)
	c, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	op, err := guard.Define(onceward.Operation{Name: config.DefaultOperation})
	if err != nil {
		t.Fatal(err)
	}
	opts := gateway.Options{Default: gateway.Route{Op: op}}
	if opts.Upstream, err = url.Parse(up.URL); err != nil {
		t.Fatal(err)
	}
	for i := range c.Routes {
		route, err := c.Routes[i].Define(guard, onceward.Operation{}, oncehttp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		opts.Routes = append(opts.Routes, route)
	}
	h, err := gateway.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL, runs
}

// TestNamedMethodIsGuarded: a GET passes unless a route names it, for then it writes.
func TestNamedMethodIsGuarded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, routes, method, path string
		runs                       int64
	}{
		{"no route", "", "GET", "/charge", 2},
		{"named in match", "  - match: \"GET /charge\"\n    operation: a\n", "GET", "/charge", 1},
		{"HEAD of it", "  - match: \"GET /charge\"\n    operation: a\n", "HEAD", "/charge", 1},
		{"named in methods", "  - match: \"/charge\"\n    operation: a\n    methods: [GET]\n", "GET", "/charge", 1},
		{"match without method", "  - match: \"/charge\"\n    operation: a\n", "GET", "/charge", 2},
		{"a method of its own", "  - match: \"MKCOL /dav/{name}\"\n    operation: a\n", "MKCOL", "/dav/x", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			gatewayURL, runs := serve(t, "routes:\n"+c.routes)
			for range 2 {
				r, err := http.NewRequestWithContext(t.Context(), c.method, gatewayURL+c.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Idempotency-Key", "K")
				resp, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Fatalf("status %d", resp.StatusCode)
				}
			}
			if n := runs.Load(); n != c.runs {
				t.Errorf("ran %d times, want %d", n, c.runs)
			}
		})
	}
}

// TestEmptyFile: nothing has to be said in a file.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "upstream: http://127.0.0.1:9\nadmin_listen: \"\"\n"} {
		c, err := load(t, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if text != "" && text[0] == 'u' && (c.AdminListen == nil || *c.AdminListen != "") {
			t.Errorf("%q: an empty admin_listen was not seen", text)
		}
	}
}

// TestTypingErrors: what a slip of the hand leaves in a file is an error at its place, and not something else that works.
func TestTypingErrors(t *testing.T) {
	t.Parallel()
	const route = "routes:\n  - match: /a\n    operation: a\n    "
	for _, c := range []struct{ text, want string }{
		{route + "key: [\"header: X\"]\n", `:4:11: "header: X": " X" is no name of a header`},
		{route + "key: [\"header:X Y\"]\n", `:4:11: "header:X Y": "X Y" is no name`},
		{route + "key: [\"header:X:\"]\n", "is no name"},
		{route + "key: [\"query: x\"]\n", `:4:11: "query: x": a blank`},
		{route + "key: [\"form:x \"]\n", "a blank"},
		{route + "key: []\n", ":4:10: key is empty"},
		{route + "leave_out: [\"query: x\"]\n", `:4:17: "query: x": a blank`},
		{route + "max_body: 1.5\n", ":4:15: 1.5 is not a whole number"},
		{route + "max_result: 1e6\n", ":4:17: 1e6 is not a whole number"},
		{route + "max_attempts: \"5\"\n", ":4:19: 5 is not a whole number"},
		{route + "on_status: {200.5: done}\n", "200.5 is not a whole number"},
		{route + "on_status:\n      200.5: done\n", "200.5 is not a whole number"},
		{route + "methods: [PSOT]\n", ":4:15: PSOT is no HTTP method"},
		{"routes:\n  - match: \"PSOT /a\"\n    operation: a\n", ":2:12: PSOT is no HTTP method"},
		{"routes:\n  - match: \"post /a\"\n    operation: a\n", ":2:12: post is no HTTP method"},
		{"lease: 1s\n---\ndrain: 2s\n", ":3:1: a second document begins here"},
		{"lease: 1s\n...\ndrain: 2s\n", ":3:1: a second document begins here"},
		{"read_timeout: 0s\n", ":1:15: 0s is too short"},
		{"lease: 30\n", `:1:8: "30" is not a duration`},
		{route + "repeatable: yes\n", "bool"},
		{"drain: 1s\ndrain: 2s\n", "already defined"},
		{route + "resolve: /outcome\n", ":4:14: resolve: use a URL"},
		{route + "resolve: ftp://x/\n", ":4:14: resolve: use a URL"},
		{route + "resolve: http://me:pw@x/\n", ":4:14: resolve: use a URL"},
		{route + "resolve: http://x/#f\n", ":4:14: resolve: use a URL"},
		{route + "resolve: [http://x/]\n", "resolve"},
		{route + "retried_for: 1\n", `:4:18: "1" is not a duration`},
		{route + "retried_for: 25h\n", ":4:18: senders come again for 25h and results are kept for 24h0m0s"},
		{route + "retention: 1h\n    retried_for: 2h\n", ":5:18: senders come again for 2h and results are kept for 1h0m0s"},
	} {
		if _, err := load(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	for _, text := range []string{
		"---\nlease: 1s\n", "lease: 1s\n---\n", "lease: 1s\n---\n# nothing\n",
		route + "key: [header:X-Pay_Id.2, \"query:a b\", json:/a b]\n    max_body: 0\n    on_status: {409: done, 500: final}\n",
	} {
		if _, err := load(t, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestResolveOfARoute: the file's URL is asked, about this route alone and within its limit of results, and the rest of what
// a route says of coming again reaches the operation.
func TestResolveOfARoute(t *testing.T) {
	t.Parallel()
	office := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Onceward-Outcome", "done")
		_, _ = io.WriteString(w, strings.Repeat("x", len(r.URL.Query().Get("of"))))
	}))
	t.Cleanup(office.Close)
	c, err := load(t, "routes:\n  - match: /a\n    operation: a\n    resolve: "+office.URL+"/?of=xxxx\n    max_result: 4\n    retried_for: 24h\n"+
		"  - match: /b\n    operation: b\n    resolve: "+office.URL+"/?of=xxxxx\n    max_result: 4\n"+
		"  - match: /c\n    operation: c\n    retention: 48h\n    retried_for: 48h\n")
	if err != nil {
		t.Fatal(err)
	}
	guard, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	var policies []onceward.Operation
	for i := range c.Routes {
		route, err := c.Routes[i].Define(guard, onceward.Operation{}, oncehttp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, route.Op.Policy())
	}
	if a, err := policies[0].Resolve(t.Context(), onceward.Question{}); err != nil || a.String() != "happened" {
		t.Errorf("%v, %v", a, err)
	}
	if a, err := policies[1].Resolve(t.Context(), onceward.Question{}); err == nil || !strings.Contains(err.Error(), "longer than 4 bytes") {
		t.Errorf("%v, %v", a, err)
	}
	if policies[2].Resolve != nil {
		t.Error("a route that names nobody asks somebody")
	}
	if policies[0].RetriedFor != 24*time.Hour || policies[1].RetriedFor != 0 || policies[2].RetriedFor != 48*time.Hour {
		t.Errorf("%v %v %v", policies[0].RetriedFor, policies[1].RetriedFor, policies[2].RetriedFor)
	}
}
