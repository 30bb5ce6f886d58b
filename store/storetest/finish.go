package storetest

import (
	"errors"
	"time"

	"github.com/onceward/onceward/driver"
)

func finishCases() []Case {
	return []Case{
		{"renew/extends and never shortens", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.shift(c.ID, lease/2)
			b.renews(c, got, lease, nil)
			first := b.get(c.ID).LeaseUntil
			b.renews(c, got, time.Minute, nil)
			if now := b.get(c.ID).LeaseUntil; now.Before(first) || first.Sub(got.Now) < lease {
				t.Errorf("lease until %v, then %v", first, now)
			}
		}},
		{"renew/not after the lease", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.shift(c.ID, lease+time.Minute)
			b.renews(c, got, lease, driver.ErrLeaseLost)
		}},
		{"renew/not by another", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			other := c
			other.Owner = newOwner()
			b.renews(other, got, lease, driver.ErrLeaseLost)
			got.Record.Fence--
			b.renews(c, got, lease, driver.ErrLeaseLost)
			b.renews(ask("absent"), got, lease, driver.ErrLeaseLost)
		}},
		{"renew/not when finished", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.ends(endOf(c, got, success("r")), true)
			b.renews(c, got, lease, driver.ErrLeaseLost)
		}},
		{"finish/success is replayed", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			b.ends(endOf(c, b.wins(c), success("r")), true)
			if r := b.finds(ask("k"), driver.Done).Record; string(r.Result.Data) != "r" || r.Result.Codec != "raw" {
				t.Errorf("%+v", r.Result)
			}
		}},
		{"finish/retention counts from the finish", func(t T, h *Harness) {
			b := open(t, h)
			for _, o := range []driver.Outcome{success("r"), failure(driver.Final, "no"), failure(driver.Retryable, "busy")} {
				c := ask(newOwnerKey())
				got := b.wins(c)
				b.shift(c.ID, lease/2)
				end := b.ends(endOf(c, got, o), true)
				for _, r := range []driver.Record{end.Record, b.get(c.ID)} {
					if !r.CompletedAt.Equal(end.Now) || !r.ExpiresAt.Equal(end.Now.Add(retention)) {
						t.Errorf("%+v at %v", r, end.Now)
					}
				}
			}
		}},
		{"finish/final is replayed", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			o := failure(driver.Final, "insufficient balance")
			o.Result = driver.Result{Codec: "http", Meta: []byte("402"), Data: []byte("no")}
			b.ends(endOf(c, b.wins(c), o), true)
			if r := b.finds(ask("k"), driver.Refused).Record; r.Error != o.Error || string(r.Result.Data) != "no" || string(r.Result.Meta) != "402" {
				t.Errorf("%+v", r)
			}
		}},
		{"finish/unknown keeps its owner and does not expire", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.ends(endOf(c, b.wins(c), failure(driver.Unknown, "cut")), true)
			if r := got.Record; r.Owner != c.Owner || !r.ExpiresAt.IsZero() {
				t.Errorf("%+v", r)
			}
		}},
		{"finish/retryable clears its owner", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.ends(endOf(c, b.wins(c), failure(driver.Retryable, "busy")), true)
			if r := got.Record; !r.Owner.IsZero() || r.ExpiresAt.IsZero() {
				t.Errorf("%+v", r)
			}
		}},
		{"finish/a lost reply is answered again", func(t T, h *Harness) {
			for _, o := range []driver.Outcome{success("r"), failure(driver.Final, "no"), failure(driver.Retryable, "busy"), failure(driver.Unknown, "cut")} {
				b := open(t, h)
				c := ask("k")
				f := endOf(c, b.wins(c), o)
				first := b.ends(f, true)
				if again := b.ends(f, true); again.Record.Fence != first.Record.Fence || again.Record.Failure != first.Record.Failure {
					t.Errorf("%+v then %+v", first.Record, again.Record)
				}
			}
		}},
		{"finish/a final end does not change", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.ends(endOf(c, got, success("first")), true)
			if r := b.ends(endOf(c, got, success("second")), false).Record; string(r.Result.Data) != "first" {
				t.Errorf("%q", r.Result.Data)
			}
		}},
		{"finish/late truth is taken when nobody came", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.shift(c.ID, 10*lease)
			b.ends(endOf(c, got, success("late")), true)
			b.finds(ask("k"), driver.Done)
		}},
		{"finish/late truth is taken by an unknown", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.shift(c.ID, 10*lease)
			b.finds(ask("k"), driver.OutcomeOpen)
			b.ends(endOf(c, got, success("late")), true)
		}},
		{"finish/late truth is taken by a settled lapse", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			got := b.wins(c)
			b.shift(c.ID, 10*lease)
			b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence}, true)
			b.ends(endOf(c, got, success("late")), true)
		}},
		{"finish/not after a takeover", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			first := b.wins(c)
			b.shift(c.ID, 2*lease)
			d := repeatable(ask("k"))
			second := b.wins(d)
			// A fence of its own is another case's demand: this one is about the owner.
			if r := b.ends(endOf(c, first, success("old")), false).Record; r.Owner != d.Owner || r.Status != driver.Processing {
				t.Errorf("%+v", r)
			}
			b.ends(endOf(d, second, success("new")), true)
			if r := b.ends(endOf(c, first, success("old")), false).Record; string(r.Result.Data) != "new" {
				t.Errorf("the loser gets %q", r.Result.Data)
			}
		}},
		{"finish/late truth or a takeover, never both", func(t T, h *Harness) {
			b := open(t, h)
			for range 20 {
				c := repeatable(ask(newOwnerKey()))
				f := endOf(c, b.wins(c), success("late"))
				b.shift(c.ID, 2*lease)
				d := repeatable(c)
				d.Owner = newOwner()
				var end driver.Finished
				var over driver.Claimed
				var err1, err2 error
				storm(2, func(i int) {
					if i == 0 {
						end, err1 = b.s.Finish(t.Context(), f)
					} else {
						over, err2 = b.s.Claim(t.Context(), d)
					}
				})
				if err1 != nil || err2 != nil {
					t.Fatalf("%v, %v", err1, err2)
				}
				if took := over.Verdict == driver.GotClaim; took == end.Applied || !took && over.Verdict != driver.Done {
					t.Errorf("the late end was applied: %v; the other claim got verdict %d", end.Applied, over.Verdict)
				}
			}
		}},
		{"finish/not with another fence", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			f := endOf(c, b.wins(c), success("r"))
			f.Fence--
			b.ends(f, false)
			b.finds(ask("k"), driver.InFlight)
		}},
		{"finish/not after a resolution", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.ends(endOf(c, got, failure(driver.Unknown, "cut")), true)
			b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence, Outcome: failure(driver.Final, "no"), Resolution: "by ann", Owner: newOwner()}, true)
			if r := b.ends(endOf(c, got, success("late")), false).Record; r.Resolution != "by ann" {
				t.Errorf("%+v", r)
			}
		}},
		{"finish/a missing row is inserted", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			r := b.ends(driver.Finish{Claim: c, Fence: time.Now().UnixMicro(), Attempt: 3, Died: 1, Outcome: success("r")}, true).Record
			if r.Attempt != 3 || r.Died != 1 || r.Key != "k" || r.Scope != c.Scope {
				t.Errorf("%+v", r)
			}
			b.finds(ask("k"), driver.Done)
		}},
	}
}

func (b *bench) renews(c driver.Claim, got driver.Claimed, d time.Duration, want error) {
	b.Helper()
	err := b.s.Renew(b.Context(), driver.Renewal{ID: c.ID, Owner: c.Owner, Fence: got.Record.Fence, Lease: d})
	if !errors.Is(err, want) || want == nil && err != nil {
		b.Fatalf("renew: %v, want %v", err, want)
	}
}
