package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/store/faultstore"
)

// told returns the events as lines, without durations.
func (d *desk) told() (lines []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		lines = append(lines, fmt.Sprintf("%d %s %q #%d %v", e.Kind, e.Operation, e.Outcome, e.Attempt, e.Err))
	}
	d.events = nil
	return lines
}

// TestEvents: what an observer is told of each way, in order.
func TestEvents(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Lease: time.Minute})
		for _, c := range []struct {
			name string
			call func()
			want []string
		}{
			{"first", func() { _, _, _ = d.pay(t.Context(), "K", slow(30*time.Second)) }, []string{
				`3 pay "claim" #0 <nil>`, `1 pay "executed" #1 <nil>`, `3 pay "renew" #0 <nil>`, `3 pay "finish" #0 <nil>`, `2 pay "SUCCESS" #1 <nil>`,
			}},
			{"replay", func() { _, _, _ = d.pay(t.Context(), "K", paid) }, []string{`3 pay "claim" #0 <nil>`, `1 pay "replayed" #1 <nil>`}},
			{"failed", func() {
				_, _, _ = d.pay(t.Context(), "F", func(context.Context) (string, error) { return "", busy })
			}, []string{`3 pay "claim" #0 <nil>`, `1 pay "executed" #1 <nil>`, `3 pay "finish" #0 <nil>`, `2 pay "FAIL RETRYABLE" #1 <nil>`}},
			{"refused", func() { _, _ = d.Begin(t.Context(), d.op, onceward.Call{}) }, []string{
				fmt.Sprintf(`1 pay "key_missing" #0 %v`, onceward.ErrKeyMissing),
			}},
			{"gone", func() {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, _, _ = d.pay(ctx, "K", paid)
			}, []string{`1 pay "cancelled" #0 context canceled`}},
			{"a stumbling store", func() {
				d.store.Refuse(faultstore.Claim, 1)
				_, _, _ = d.pay(t.Context(), "K", paid)
			}, []string{fmt.Sprintf(`3 pay "claim" #0 %v`, faultstore.Err), `3 pay "claim" #0 <nil>`, `1 pay "replayed" #1 <nil>`}},
		} {
			c.call()
			if got := d.told(); !slices.Equal(got, c.want) {
				t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		}
	})
}

// TestKindsHaveWords: metrics and headers are made of them.
func TestKindsHaveWords(t *testing.T) {
	t.Parallel()
	want := []string{"none", "executed", "replayed", "replayed_failure", "in_flight", "mismatch", "unknown", "duplicate", "superseded", "none"}
	for i, word := range want {
		if got := onceward.Kind(i).String(); got != word { //nolint:gosec // ten kinds
			t.Errorf("%d: %q, want %q", i, got, word)
		}
	}
}
