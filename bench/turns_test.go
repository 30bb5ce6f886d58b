package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/key"
)

// inTurns runs both in many short turns, so that what else the machine does hits both, and reports the median of the ratios
// of their rates as x, and the time that 99 of 100 calls stay under.
func inTurns(b *testing.B, callers int, ours, theirs func(context.Context, string) error) {
	b.Helper()
	const turns = 30
	per := max(b.N/turns, callers)
	var own, other run
	ratios := make([]float64, 0, turns)
	b.ResetTimer()
	for range turns {
		o := own.turn(b, callers, per, ours)
		t := other.turn(b, callers, per, theirs)
		ratios = append(ratios, float64(t)/float64(o))
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(own.each(), "own-us/op")
	b.ReportMetric(other.each(), "minimum-us/op")
	b.ReportMetric(own.p99(), "own-p99-ms")
	b.ReportMetric(other.p99(), "minimum-p99-ms")
	b.ReportMetric(ratios[turns/2], "x")
}

// run is what one side did in all its turns.
type run struct {
	total time.Duration
	mu    sync.Mutex
	took  []time.Duration
}

// turn makes n calls from so many callers, each with a key of its own.
func (r *run) turn(b *testing.B, callers, n int, do func(context.Context, string) error) time.Duration {
	b.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = key.New().Reveal()
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	start := time.Now()
	for range callers {
		wg.Go(func() {
			var took []time.Duration
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				begun := time.Now()
				if err := do(b.Context(), keys[i-1]); err != nil {
					b.Error(err)
					return
				}
				took = append(took, time.Since(begun))
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.took = append(r.took, took...)
		})
	}
	wg.Wait()
	d := time.Since(start)
	r.total += d
	return d
}

func (r *run) each() float64 { return float64(r.total.Nanoseconds()) / 1000 / float64(len(r.took)) }

func (r *run) p99() float64 {
	slices.Sort(r.took)
	return float64(r.took[len(r.took)*99/100].Microseconds()) / 1000
}

// together makes n calls at once.
func together(b *testing.B, n int, do func() error) {
	b.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := do(); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}
