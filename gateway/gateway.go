// Package gateway is a reverse proxy that guards the service behind it: duplicates of a keyed request are answered with
// the first answer, and the service sees the request once.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// Options of a gateway.
type Options struct {
	// Upstream is the base URL of the service. Required, http or https.
	Upstream *url.URL
	// Default guards what no route names. Its Operation is required.
	Default Route
	// Routes name requests that have policies of their own.
	Routes []Route
	// ReadTimeout bounds how long a request's body keeps us waiting: for so long in all, and a second more for each KiB that
	// came. Zero: 30 s.
	ReadTimeout time.Duration
	// Logger gets what went wrong with the upstream. Nil: slog.Default().
	Logger *slog.Logger
}

// Route is a set of requests and how they are guarded.
type Route struct {
	Match string            // an http.ServeMux pattern, such as "POST /pay/{id}"; empty only in Options.Default
	Op    *onceward.Op      // defined by one guard for all routes
	HTTP  *oncehttp.Options // nil as in oncehttp.New
	// KeyHeaders are the headers in HTTP.Keys: they reach the service even if Connection names them, which is for proxies
	// alone. An X-Request-Id among them is the client's word: it passes as it is, and logs show its digest.
	// Nil: Idempotency-Key and X-Idempotency-Key.
	KeyHeaders []string
}

// New returns the gateway's handler. All problems of the routes are returned at once.
func New(opts *Options) (http.Handler, error) {
	if opts == nil || opts.Upstream == nil || opts.Upstream.Host == "" || opts.Upstream.Scheme != "http" && opts.Upstream.Scheme != "https" {
		return nil, errors.New("gateway: the upstream must be a URL such as http://127.0.0.1:9000")
	}
	if opts.ReadTimeout < 0 {
		return nil, errors.New("gateway: ReadTimeout is negative; zero means the default")
	}
	hop := hop{upstream: opts.Upstream, transport: newOnceTransport(), buffers: newBufferPool(), log: opts.Logger}
	if hop.log == nil {
		hop.log = slog.Default()
	}
	g := &gateway{routes: routes{mux: http.NewServeMux()}, patience: opts.ReadTimeout}
	if g.patience == 0 {
		g.patience = 30 * time.Second
	}
	var err error
	if g.rest, err = hop.route(&opts.Default); err != nil {
		return nil, err
	}
	var problems []error
	for i := range opts.Routes {
		r := &opts.Routes[i]
		to, err := hop.route(r)
		if err == nil {
			err = g.routes.add(to)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("route %d (%s): %w", i+1, r.Match, err))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return g, nil
}

type gateway struct {
	routes   routes
	rest     *route
	patience time.Duration
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := g.routes.of(r)
	if to == nil {
		to = g.rest
	}
	v := &visit{header: w.Header()}
	v.id[0], v.shown = to.requestID(r)
	v.header[requestIDHeader] = v.id[:]
	r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
	if r.Body != nil && r.Body != http.NoBody {
		v.body = awaited{ReadCloser: r.Body, control: http.NewResponseController(w), patience: g.patience}
		v.body.wait() // from now on, for whoever never reads it too
		r.Body = &v.body
	}
	to.ServeHTTP(w, r)
}

// visit is what the parts of the gateway know of one request.
type visit struct {
	id     [1]string // the X-Request-Id that the service and the client get
	shown  string    // for logs
	header http.Header
	status []string // the Idempotency-Status that stood there before the proxy
	begun  bool     // the proxy has a request to send
	body   awaited
}

type visitKey struct{}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// restore puts our headers back: the proxy clears them all with each 1xx answer that it passes on.
func (v *visit) restore() {
	v.header[requestIDHeader] = v.id[:]
	if v.status != nil {
		v.header[oncehttp.HeaderStatus] = v.status
	}
}

// route is a Route at work.
type route struct {
	http.Handler
	pattern    string
	alone      http.ServeMux // knows this pattern only
	keyHeaders []string      // canonical
	repeatable bool
}

// route makes a route whose requests go to the service.
func (h *hop) route(r *Route) (*route, error) {
	once, err := oncehttp.New(r.Op, r.HTTP)
	if err != nil {
		return nil, err
	}
	to := &route{pattern: r.Match, repeatable: r.Op.Policy().Repeatable, keyHeaders: []string{"Idempotency-Key", "X-Idempotency-Key"}}
	if r.KeyHeaders != nil {
		to.keyHeaders = slices.Clone(r.KeyHeaders)
		for i, name := range to.keyHeaders {
			to.keyHeaders[i] = http.CanonicalHeaderKey(name)
		}
	}
	to.Handler = once(h.proxy(to))
	return to, nil
}
