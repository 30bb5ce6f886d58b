package storetest

import (
	"errors"
	"time"

	"github.com/onceward/onceward/driver"
)

func settleCases() []Case {
	return []Case{
		{"settle/not before the grace is over", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			got := b.wins(c)
			b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence}, false)
			b.shift(c.ID, lease+lease/3-time.Minute)
			b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence}, false)
		}},
		{"settle/a lapse that may be repeated", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			got := b.wins(c)
			b.shift(c.ID, 2*lease)
			r := b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence}, true).Record
			if r.Failure != driver.Retryable || r.Owner != c.Owner || r.Fence != got.Record.Fence || r.Died != 1 {
				t.Errorf("%+v", r)
			}
			if again := b.wins(ask("k")); again.Record.Attempt != 2 || again.Record.Died != 1 {
				t.Errorf("%+v", again.Record)
			}
		}},
		{"settle/a lapse that may not be repeated", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.shift(c.ID, 2*lease)
			r := b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence}, true).Record
			if r.Failure != driver.Unknown || r.Owner != c.Owner || r.Fence != got.Record.Fence || r.Died != 1 {
				t.Errorf("%+v", r)
			}
		}},
		{"settle/only the fence that was seen", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			got := b.wins(c)
			b.shift(c.ID, 2*lease)
			b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence - 1}, false)
		}},
		{"settle/resolutions", func(t T, h *Harness) {
			for _, x := range []struct {
				o    driver.Outcome
				want driver.Verdict
			}{
				{success("r"), driver.Done}, {failure(driver.Final, "no"), driver.Refused}, {failure(driver.Retryable, "did not"), driver.GotClaim},
			} {
				b := open(t, h)
				c := ask("k")
				got := b.wins(c)
				b.ends(endOf(c, got, failure(driver.Unknown, "cut")), true)
				s := driver.Settlement{ID: c.ID, Fence: got.Record.Fence, Outcome: x.o, Resolution: "by ann: asked", Owner: newOwner()}
				r := b.settle(s, true).Record
				if r.Fence <= got.Record.Fence || r.Owner != s.Owner || r.Resolution != s.Resolution || r.ExpiresAt.IsZero() {
					t.Errorf("%+v", r)
				}
				b.settle(s, true) // its reply was lost
				b.finds(ask("k"), x.want)
			}
		}},
		{"settle/only an unknown is resolved", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			s := driver.Settlement{ID: c.ID, Fence: got.Record.Fence, Outcome: success("r"), Owner: newOwner()}
			b.settle(s, false)
			b.ends(endOf(c, got, success("own")), true)
			b.settle(s, false)
		}},
		{"settle/what is not there", func(t T, h *Harness) {
			b := open(t, h)
			if _, err := b.s.Settle(t.Context(), driver.Settlement{ID: ask("k").ID}); !errors.Is(err, driver.ErrNotFound) {
				t.Errorf("%v", err)
			}
			if _, err := b.s.Get(t.Context(), ask("k").ID); !errors.Is(err, driver.ErrNotFound) {
				t.Errorf("%v", err)
			}
		}},
	}
}
