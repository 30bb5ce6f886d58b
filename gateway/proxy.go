package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// hop is the way to the service, one for all routes.
type hop struct {
	upstream  *url.URL
	transport http.RoundTripper
	buffers   httputil.BufferPool
	log       *slog.Logger
}

// proxy sends a route's requests to the service.
func (h *hop) proxy(to *route) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:  h.transport,
		BufferPool: h.buffers,
		ErrorLog:   slog.NewLogLogger(h.log.Handler(), slog.LevelWarn),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(h.upstream)
			r.SetXForwarded()
			for _, name := range to.keyHeaders {
				if lines, has := r.In.Header[name]; has {
					r.Out.Header[name] = lines
				}
			}
			v := visitOf(r.In.Context())
			r.Out.Header[requestIDHeader] = v.id[:]
			v.status, v.begun = v.header[oncehttp.HeaderStatus], true
		},
		ModifyResponse: func(resp *http.Response) error {
			delete(resp.Header, requestIDHeader) // ours stands there
			visitOf(resp.Request.Context()).restore()
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			h.failed(w, r, err, to.repeatable)
		},
	}
}

// failed answers for a service that did not. Whether it may have run decides what that means, and no route's table of
// statuses: this one is ours.
func (h *hop) failed(w http.ResponseWriter, r *http.Request, err error, repeatable bool) {
	v := visitOf(r.Context())
	v.restore()
	h.log.Warn("gateway: the upstream did not answer", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("request_id", v.shown), slog.Any("error", err))
	switch {
	case v.body.late():
		w.Header().Set("Connection", "close")
		http.Error(w, "the request body did not come in time", http.StatusRequestTimeout) // no key, so no problem of one
		return
	case errors.Is(err, errNotSent) || !v.begun:
		oncehttp.SetOutcome(w, oncehttp.NotDone)
		oncehttp.NewProblem(onceward.CodeUpstreamUnreachable, time.Second, "").Write(w)
		return
	}
	outcome := oncehttp.Unknown
	if repeatable {
		outcome = oncehttp.NotDone
	}
	oncehttp.SetOutcome(w, outcome)
	p := oncehttp.NewProblem(onceward.CodeOutcomeUnknown, 0, "the service did not answer, or its answer was cut")
	why := "its answer was cut, or never came"
	p.Status = http.StatusBadGateway
	if isTimeout(r, err) {
		p.Status, why = http.StatusGatewayTimeout, "it did not answer in time"
	}
	// Duplicates are shown this, so it has nothing of the inside; the command tells HTTP records by its first words.
	oncehttp.SetReason(w, fmt.Sprintf("HTTP status %d by the gateway for a service: %s", p.Status, why))
	p.Write(w)
}
