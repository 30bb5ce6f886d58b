package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// TestTroubleIsToldOfSeldom: one line for each kind of call in ten seconds, with how many failed and why.
func TestTroubleIsToldOfSeldom(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	now := time.Now()
	tr := newTrouble(slog.New(slog.NewTextHandler(&log, nil)))
	tr.now = func() time.Time { return now }
	note := func(call string, err error) {
		tr.note(onceward.Event{Kind: onceward.EventStore, Outcome: call, Err: err})
	}
	full := fmt.Errorf("%w: no room", driver.ErrStoreFull)
	steps := []struct {
		name, call string
		err        error
		after      time.Duration
		want       []string // of the line; none: no line
		recent     bool
	}{
		{"the first", "claim", errors.New("away"), 0, []string{"level=WARN", "call=claim", "code=store_unavailable", "count=1", "error=away"}, true},
		{"again", "claim", errors.New("away"), time.Second, nil, true},
		{"another call", "renew", errors.New("away"), time.Second, []string{"call=renew", "count=1"}, true},
		{"after a while", "claim", full, 9 * time.Second, []string{"call=claim", "code=store_full", "count=2", "no room"}, true},
		{"a claim that was good, perhaps by reading", "claim", nil, time.Second, nil, true},
		{"a write that was good", "finish", nil, time.Second, nil, false},
		{"long after", "claim", full, time.Minute, []string{"count=1"}, true},
		{"no news", "claim", nil, 10 * time.Second, nil, false},
		{"one record", "claim", driver.ErrDamaged, time.Minute, []string{"code=corrupt_record"}, false},
		{"a lease", "renew", driver.ErrLeaseLost, time.Minute, nil, false},
		{"a caller who is gone", "claim", context.Canceled, time.Minute, nil, false},
	}
	for _, s := range steps {
		now = now.Add(s.after)
		log.Reset()
		note(s.call, s.err)
		for _, want := range s.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: no %s in %q", s.name, want, log.String())
			}
		}
		if s.want == nil && log.Len() > 0 {
			t.Errorf("%s: %q", s.name, log.String())
		}
		if tr.recent() != s.recent {
			t.Errorf("%s: recent is %v", s.name, tr.recent())
		}
	}
}
