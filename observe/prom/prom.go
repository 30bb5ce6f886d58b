// Package prom turns a guard's events into Prometheus metrics. No label ever holds a key, a user or an error's text.
package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/janitor"
)

// Metrics are the metrics of one process. Safe for concurrent use.
type Metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	attempt   *prometheus.HistogramVec
	finished  *prometheus.CounterVec
	storeCall *prometheus.HistogramVec
	storeErr  *prometheus.CounterVec
	events    *prometheus.CounterVec
	inFlight  prometheus.Gauge
	running   prometheus.Gauge
	oldest    prometheus.Gauge
	unknown   prometheus.Gauge
	lapsed    *prometheus.CounterVec

	oldestUnknown, overdue, expired, lag, sweep prometheus.Gauge
	purged                                      prometheus.Counter
	asked, resolved                             *prometheus.CounterVec
}

// New registers the metrics with reg.
func New(reg prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "onceward_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "onceward_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "onceward_" + name, Help: help})
	}
	m := &Metrics{
		requests:  counter("requests_total", "Calls, by operation and how they were answered or, without a key, passed on.", "operation", "outcome"),
		duration:  histogram("decision_duration_seconds", "Time from a call to its decision, waiting included.", "operation"),
		attempt:   histogram("attempt_duration_seconds", "Time from a claim to its recorded end.", "operation"),
		finished:  counter("attempts_total", "Ended attempts, by operation and recorded status.", "operation", "status"),
		storeCall: histogram("store_call_duration_seconds", "Store calls.", "call"),
		storeErr:  counter("store_call_errors_total", "Store calls that failed.", "call"),
		events:    counter("events_total", "What should be rare: lost leases, timeouts, unrecorded and given up results, contradictions, unguarded runs.", "event"),
		inFlight:  gauge("attempts_in_flight", "Attempts that run in this process."),
		running:   gauge("records_processing", "Records in PROCESSING, at the last sweep."),
		oldest:    gauge("records_processing_oldest_seconds", "Age of the oldest PROCESSING record, at the last sweep."),
		unknown:   gauge("records_unknown", "Records whose outcome is unknown, at the last sweep."),
		lapsed:    counter("lapsed_total", "Dead attempts that were settled, by what became of them.", "became"),

		oldestUnknown: gauge("records_unknown_oldest_seconds", "For how long the oldest unknown outcome has been so, at the last sweep."),
		overdue:       gauge("records_unknown_overdue", "Outcomes that have been unknown for longer than the alarm age."),
		expired:       gauge("records_expired", "Expired records that are still there, after the last sweep."),
		lag:           gauge("purge_lag_seconds", "For how long the oldest expired record had been so when the last sweep saw it."),
		sweep:         gauge("sweep_duration_seconds", "How long the last sweep took."),
		purged:        prometheus.NewCounter(prometheus.CounterOpts{Name: "onceward_purged_total", Help: "Expired records that were dropped."}),
		asked:         counter("questions_total", "Questions about unknown outcomes, by what they came to.", "answer"),
		resolved:      counter("resolved_total", "Unknown outcomes that a resolver's answer settled, by operation and answer.", "operation", "answer"),
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.duration, m.attempt, m.finished, m.storeCall, m.storeErr, m.events, m.inFlight, m.running, m.oldest, m.unknown, m.lapsed,
		m.oldestUnknown, m.overdue, m.expired, m.lag, m.sweep, m.purged, m.asked, m.resolved,
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Observe is an onceward.Observer.
func (m *Metrics) Observe(e onceward.Event) {
	switch e.Kind {
	case onceward.EventDecision:
		m.requests.WithLabelValues(e.Operation, e.Outcome).Inc()
		m.duration.WithLabelValues(e.Operation).Observe(e.Duration.Seconds())
		if e.Outcome == onceward.KindRun.String() {
			m.inFlight.Inc()
		}
	case onceward.EventUnclaimed:
		m.requests.WithLabelValues(e.Operation, e.Outcome).Inc()
	case onceward.EventFinish:
		m.inFlight.Dec()
		m.finished.WithLabelValues(e.Operation, e.Outcome).Inc()
		m.attempt.WithLabelValues(e.Operation).Observe(e.Duration.Seconds())
	case onceward.EventStore:
		m.storeCall.WithLabelValues(e.Outcome).Observe(e.Duration.Seconds())
		if e.Err != nil {
			m.storeErr.WithLabelValues(e.Outcome).Inc()
		}
	case onceward.EventResolved:
		m.resolved.WithLabelValues(e.Operation, e.Outcome).Inc()
	default:
		m.events.WithLabelValues(eventName(e.Kind)).Inc()
		if e.Kind == onceward.EventGivenUp {
			m.inFlight.Dec()
		}
	}
}

// Swept takes a sweep's report.
func (m *Metrics) Swept(r janitor.Report) {
	m.running.Set(float64(r.Processing))
	m.oldest.Set(r.Oldest.Seconds())
	m.unknown.Set(float64(r.Unknown))
	m.lapsed.WithLabelValues("repeatable").Add(float64(r.Repeatable))
	m.lapsed.WithLabelValues("unknown").Add(float64(r.Unclear))
	m.oldestUnknown.Set(r.OldestUnknown.Seconds())
	m.overdue.Set(float64(r.Overdue))
	m.expired.Set(float64(r.Expired))
	m.lag.Set(r.Lag.Seconds())
	m.sweep.Set(r.Took.Seconds())
	m.purged.Add(float64(r.Purged))
	m.asked.WithLabelValues("settled").Add(float64(r.Resolved))
	m.asked.WithLabelValues("none").Add(float64(r.Unanswered))
	m.asked.WithLabelValues("still_unknown").Add(float64(r.Asked - r.Resolved - r.Unanswered))
}

func eventName(k onceward.EventKind) string {
	switch k {
	case onceward.EventLeaseLost:
		return "lease_lost"
	case onceward.EventTimeout:
		return "timeout"
	case onceward.EventUnrecorded:
		return "unrecorded"
	case onceward.EventGivenUp:
		return "given_up"
	case onceward.EventContradiction:
		return "contradiction"
	case onceward.EventBypassed:
		return "bypassed"
	}
	return "other"
}
