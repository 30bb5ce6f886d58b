package cli

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/observe/prom"
)

// admin is what an operator asks: is it alive, is it ready, how is it going.
type admin struct {
	store    janitor.Store
	registry *prometheus.Registry
	metrics  *prom.Metrics
	trouble  *trouble
	probe    readiness
	draining atomic.Bool
	running  atomic.Int64 // attempts of this process
}

func newAdmin(s janitor.Store, log *slog.Logger) (*admin, error) {
	a := &admin{store: s, registry: prometheus.NewRegistry(), trouble: newTrouble(log), probe: readiness{store: s}}
	if err := a.registry.Register(collectors.NewGoCollector()); err != nil {
		return nil, err
	}
	if err := a.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil {
		return nil, err
	}
	var err error
	a.metrics, err = prom.New(a.registry)
	return a, err
}

// observe is the guard's observer.
func (a *admin) observe(e onceward.Event) {
	switch {
	case e.Kind == onceward.EventDecision && e.Outcome == onceward.KindRun.String():
		a.running.Add(1)
	case e.Kind == onceward.EventFinish || e.Kind == onceward.EventGivenUp:
		a.running.Add(-1)
	case e.Kind == onceward.EventStore:
		a.trouble.note(e)
	}
	a.metrics.Observe(e)
}

func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", a.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	return mux
}

// ready asks the store: a gateway whose store takes no writes refuses everything new, so traffic should go elsewhere.
func (a *admin) ready(w http.ResponseWriter, r *http.Request) {
	if a.draining.Load() {
		say(w, http.StatusServiceUnavailable, "draining")
		return
	}
	if err := a.probe.ask(r.Context()); err != nil {
		say(w, http.StatusServiceUnavailable, "the store can't be written: "+plain(err))
		return
	}
	if a.trouble.recent() { // a small write may still find room where a large one did not
		say(w, http.StatusServiceUnavailable, "the store has just refused writes: see the log")
		return
	}
	say(w, http.StatusOK, "ready")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// upkeep runs the janitor until ctx ends. Resolvers are those of the guard's operations.
func (a *admin) upkeep(ctx context.Context, o janitor.Options) error {
	o.Observer = func(rep janitor.Report, err error) {
		if err == nil {
			a.metrics.Swept(rep)
		}
	}
	return janitor.Run(ctx, a.store, &o)
}
