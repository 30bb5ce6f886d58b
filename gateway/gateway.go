// Package gateway is a reverse proxy that guards the service behind it: duplicates of a keyed request are answered with
// the first answer, and the service sees the request once.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
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
	// Logger gets what went wrong with the upstream. Nil: slog.Default().
	Logger *slog.Logger
}

// Route is a set of requests and how they are guarded.
type Route struct {
	Match string            // an http.ServeMux pattern, such as "POST /pay/{id}"; empty only in Options.Default
	Op    *onceward.Op      // defined by one guard for all routes
	HTTP  *oncehttp.Options // nil as in oncehttp.New
}

// New returns the gateway's handler. All problems of the routes are returned at once.
func New(opts *Options) (http.Handler, error) {
	if opts == nil || opts.Upstream == nil || opts.Upstream.Host == "" || opts.Upstream.Scheme != "http" && opts.Upstream.Scheme != "https" {
		return nil, errors.New("gateway: the upstream must be a URL such as http://127.0.0.1:9000")
	}
	log := opts.Logger
	if log == nil {
		log = slog.Default()
	}
	proxy := newProxy(opts.Upstream, log)
	g := &gateway{routes: http.NewServeMux()}
	once, err := oncehttp.New(opts.Default.Op, opts.Default.HTTP)
	if err != nil {
		return nil, err
	}
	g.rest = once(proxy)
	var problems []error
	for i, r := range opts.Routes {
		once, err := oncehttp.New(r.Op, r.HTTP)
		if err == nil {
			err = handle(g.routes, r.Match, once(proxy))
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

// Matches are the patterns of routes, to be checked one after the other. The zero value has none.
type Matches struct{ mux http.ServeMux }

// Add reports what is wrong with a route's pattern, by itself or beside those before it.
func (m *Matches) Add(pattern string) error {
	return handle(&m.mux, pattern, http.NotFoundHandler())
}

// registered is what a ServeMux tells of our own source, which is of no use to whoever wrote the pattern.
var registered = regexp.MustCompile(` \(registered at [^)]*\)`)

// handle registers a pattern; a bad one, or one that conflicts, is an error instead of a panic.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the pattern can't be used: %s", registered.ReplaceAllString(fmt.Sprint(p), ""))
		}
	}()
	mux.Handle(pattern, h)
	return nil
}

type gateway struct {
	routes *http.ServeMux
	rest   http.Handler
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if !validRequestID(id) {
		id = newRequestID()
		r.Header.Set("X-Request-Id", id)
	}
	w.Header().Set("X-Request-Id", id)
	r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
	// An unclean path would make the mux redirect; it is for the upstream to say what it means.
	if path.Clean(r.URL.Path) == r.URL.Path || path.Clean(r.URL.Path)+"/" == r.URL.Path {
		if h, pattern := g.routes.Handler(r); pattern != "" {
			h.ServeHTTP(w, r)
			return
		}
	}
	g.rest.ServeHTTP(w, r)
}

type requestIDKey struct{}

// RequestID returns the X-Request-Id of the gateway's request that ctx belongs to, the attempt's and the store's calls
// included, for logs; empty outside of one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// validRequestID admits what is safe in logs and headers of every hop.
func validRequestID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == ':') {
			return false
		}
	}
	return true
}

func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	return hex.EncodeToString(b[:])
}

func newProxy(upstream *url.URL, log *slog.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:  newOnceTransport(),
		BufferPool: newBufferPool(),
		ErrorLog:   slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			failed(w, r, err, log)
		},
	}
}

// failed answers for an upstream that did not. Whether it may have run decides what that means.
func failed(w http.ResponseWriter, r *http.Request, err error, log *slog.Logger) {
	log.Warn("gateway: the upstream did not answer", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("request_id", r.Header.Get("X-Request-Id")), slog.Any("error", err))
	if errors.Is(err, errNotSent) {
		oncehttp.SetOutcome(w, oncehttp.NotDone)
		oncehttp.NewProblem(onceward.CodeUpstreamUnreachable, time.Second, "").Write(w)
		return
	}
	p := oncehttp.NewProblem(onceward.CodeOutcomeUnknown, 0, "the service did not answer, or its answer was cut")
	p.Status = http.StatusBadGateway
	if isTimeout(r, err) {
		p.Status = http.StatusGatewayTimeout
	}
	p.Write(w)
}
