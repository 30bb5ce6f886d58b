package storetest

import (
	"errors"
	"time"

	"github.com/onceward/onceward/driver"
)

func purgeCases() []Case {
	return []Case{
		{"purge/what has expired, and nothing else", func(t T, h *Harness) {
			b := open(t, h)
			p := b.purger()
			live, unclear := ask("live"), ask("unclear")
			b.wins(live)
			b.ends(endOf(unclear, b.wins(unclear), failure(driver.Unknown, "cut")), true)
			stays := []driver.ID{live.ID, unclear.ID}
			var goes []driver.ID
			for name, o := range map[string]driver.Outcome{
				"done": success("r"), "refused": failure(driver.Final, "no"), "free": failure(driver.Retryable, "later"),
			} {
				old, young := ask("old "+name), ask("young "+name)
				b.ends(endOf(old, b.wins(old), o), true)
				b.ends(endOf(young, b.wins(young), o), true)
				b.shift(old.ID, 2*retention)
				goes, stays = append(goes, old.ID), append(stays, young.ID)
			}
			b.shift(live.ID, 2*retention)
			b.shift(unclear.ID, 2*retention)
			ids := append(append([]driver.ID{ask("nobody's").ID}, goes...), stays...)
			if n, err := p.Purge(t.Context(), driver.Purge{IDs: ids, Floor: farFence}); err != nil || n != len(goes) {
				t.Errorf("%d dropped, want %d, %v", n, len(goes), err)
			}
			for _, id := range goes {
				if _, err := b.s.Get(t.Context(), id); !errors.Is(err, driver.ErrNotFound) {
					t.Errorf("it is still there: %v", err)
				}
			}
			for _, id := range stays {
				b.get(id)
			}
			if n, err := p.Purge(t.Context(), driver.Purge{IDs: ids, Floor: farFence}); err != nil || n != 0 {
				t.Errorf("once more: %d, %v", n, err)
			}
		}},
		{"purge/nothing above the floor", func(t T, h *Harness) {
			b := open(t, h)
			p := b.purger()
			c := ask("k")
			fence := b.expire(c)
			for want, floor := range []int64{fence - 1, fence} {
				if n, err := p.Purge(t.Context(), driver.Purge{IDs: []driver.ID{c.ID}, Floor: floor}); err != nil || n != want {
					t.Errorf("%d dropped, want %d, %v", n, want, err)
				}
			}
		}},
		{"purge/nothing that was claimed again", func(t T, h *Harness) {
			b := open(t, h)
			p := b.purger()
			running, ended := ask("running"), ask("ended")
			for _, c := range []driver.Claim{running, ended} {
				b.expire(c)
				again := ask(c.Key)
				got := b.wins(again)
				if c.Key == ended.Key {
					b.ends(endOf(again, got, success("r")), true)
				}
				if n, err := p.Purge(t.Context(), driver.Purge{IDs: []driver.ID{c.ID}, Floor: farFence}); err != nil || n != 0 {
					t.Errorf("%s: %d dropped, %v", c.Key, n, err)
				}
			}
		}},
		{"purge/fences outlive it", func(t T, h *Harness) {
			b := open(t, h)
			p := b.purger()
			c, other := ask("k"), ask("other")
			b.expire(c)
			b.h.Edit(b, b.s, c.ID, func(r *driver.Record) { r.Fence = farFence }) // as if the clock had been that far ahead
			low := b.expire(other)
			if n, err := p.Purge(t.Context(), driver.Purge{IDs: []driver.ID{c.ID}, Floor: farFence}); err != nil || n != 1 {
				t.Fatalf("%d dropped, %v", n, err)
			}
			if n, err := p.Purge(t.Context(), driver.Purge{IDs: []driver.ID{other.ID}, Floor: low}); err != nil || n != 1 {
				t.Fatalf("%d dropped, %v", n, err)
			}
			if got := b.wins(ask("k")); got.Record.Fence <= farFence || got.Record.Attempt != 1 {
				t.Errorf("fence %d after %d, attempt %d", got.Record.Fence, farFence, got.Record.Attempt)
			}
		}},
		{"purge/bounded", func(t T, h *Harness) {
			p := open(t, h).purger()
			if n, err := p.Purge(t.Context(), driver.Purge{IDs: make([]driver.ID, driver.MaxPurge+1)}); err == nil || n != 0 {
				t.Errorf("%d, %v", n, err)
			}
			for _, ids := range [][]driver.ID{nil, make([]driver.ID, driver.MaxPurge)} {
				if n, err := p.Purge(t.Context(), driver.Purge{IDs: ids}); err != nil || n != 0 {
					t.Errorf("%d, %v", n, err)
				}
			}
		}},
	}
}

// farFence is beyond what any clock gives.
var farFence = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// expire leaves a record of the claim whose retention is over, and returns its fence.
func (b *bench) expire(c driver.Claim) int64 {
	b.Helper()
	fence := b.ends(endOf(c, b.wins(c), success("r")), true).Record.Fence
	b.shift(c.ID, 2*retention)
	return fence
}

// purger skips the case on a store that has not this optional power.
func (b *bench) purger() driver.Purger {
	b.Helper()
	p, ok := b.s.(driver.Purger)
	if !ok {
		b.Skipf("%T is no driver.Purger", b.s)
	}
	return p
}
