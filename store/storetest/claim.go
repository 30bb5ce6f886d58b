package storetest

import (
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
)

func claimCases() []Case {
	return []Case{
		{"claim/first", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			r := got.Record
			if r.Status != driver.Processing || r.Attempt != 1 || r.Died != 0 || r.Owner != c.Owner || r.ID != c.ID {
				t.Errorf("record %+v", r)
			}
			if !r.LeaseUntil.Equal(got.Now.Add(lease)) || !r.DeadlineAt.Equal(got.Now.Add(2*lease)) || !r.ExpiresAt.IsZero() || r.Fence < got.Now.UnixMicro() {
				t.Errorf("times %+v at %v", r, got.Now)
			}
		}},
		{"claim/in flight", func(t T, h *Harness) {
			b := open(t, h)
			b.wins(ask("k"))
			got := b.finds(ask("k"), driver.InFlight)
			if got.Record.LeaseUntil.Sub(got.Now) <= 0 {
				t.Errorf("nothing is left of the lease: %+v", got)
			}
		}},
		{"claim/another fingerprint is seen in flight", func(t T, h *Harness) {
			b := open(t, h)
			first := b.wins(ask("k"))
			other := ask("k")
			other.Fingerprint = sumOf("other")
			b.finds(other, driver.Mismatch)
			if got := b.get(first.Record.ID); got.Owner != first.Record.Owner || got.Fingerprint != first.Record.Fingerprint {
				t.Errorf("a mismatch changed the record: %+v", got)
			}
		}},
		{"claim/another fingerprint is seen when finished", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			b.ends(endOf(c, b.wins(c), success("r")), true)
			other := ask("k")
			other.Fingerprint = sumOf("other")
			b.finds(other, driver.Mismatch)
		}},
		{"claim/a fingerprint of another version is not compared", func(t T, h *Harness) {
			b := open(t, h)
			first := b.wins(ask("k")).Record
			other := ask("k")
			other.Fingerprint[0]++
			b.finds(other, driver.OtherVersion)
			if r := b.get(first.ID); r.Fingerprint != first.Fingerprint || r.Owner != first.Owner {
				t.Errorf("it changed the record: %+v", r)
			}
		}},
		{"claim/one of many wins", func(t T, h *Harness) {
			b := open(t, h)
			for range 10 {
				b.race(newOwnerKey(), nil)
			}
		}},
		{"claim/one of many wins over two store objects", func(t T, h *Harness) {
			b := open(t, h)
			second := b.second()
			for range 5 {
				b.race(newOwnerKey(), second)
			}
		}},
		{"claim/store objects agree on the time", func(t T, h *Harness) {
			b := open(t, h)
			second := b.second()
			c := ask("k")
			c.Lease = time.Minute
			b.wins(c)
			d := repeatable(ask("k"))
			got, err := second.Claim(t.Context(), d)
			if err != nil || got.Verdict != driver.InFlight {
				t.Errorf("the other object: verdict %d, %v", got.Verdict, err)
			}
		}},
		{"claim/a lost reply is answered again", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			first := b.wins(c)
			again := b.wins(c)
			if again.Record.Fence != first.Record.Fence || again.Record.Attempt != 1 {
				t.Errorf("the same claim made another attempt: %+v", again.Record)
			}
		}},
		{"claim/a live lease is not taken", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			b.wins(c)
			b.shift(c.ID, lease-time.Minute)
			b.finds(repeatable(ask("k")), driver.InFlight)
		}},
		{"claim/grace is in flight", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			b.wins(c)
			b.shift(c.ID, lease+lease/3-time.Minute)
			b.finds(repeatable(ask("k")), driver.InFlight)
		}},
		{"claim/a dead attempt that may be repeated is taken over", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			b.wins(c)
			b.shift(c.ID, 2*lease)
			d := repeatable(ask("k"))
			got := b.wins(d)
			if r := got.Record; !got.Takeover || r.Attempt != 2 || r.Died != 1 || r.Owner != d.Owner {
				t.Errorf("%+v", got)
			}
		}},
		{"claim/a takeover has a new fence", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			first := b.wins(c)
			b.shift(c.ID, 2*lease)
			if got := b.wins(repeatable(ask("k"))); got.Record.Fence <= first.Record.Fence {
				t.Errorf("fence %d after %d", got.Record.Fence, first.Record.Fence)
			}
		}},
		{"claim/one of many takes over", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			b.wins(c)
			b.shift(c.ID, 2*lease)
			var mu sync.Mutex
			won := 0
			storm(20, func(int) {
				got, err := b.s.Claim(t.Context(), repeatable(ask("k")))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				if got.Verdict == driver.GotClaim {
					won++
				}
			})
			if won != 1 {
				t.Errorf("%d took over", won)
			}
		}},
		{"claim/a dead attempt that may not be repeated is unknown", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			b.wins(c)
			b.shift(c.ID, 2*lease)
			got := b.finds(repeatable(ask("k")), driver.OutcomeOpen)
			if r := got.Record; r.Failure != driver.Unknown || r.Owner != c.Owner || r.Died != 1 || !r.ExpiresAt.IsZero() || r.Error == "" {
				t.Errorf("%+v", r)
			}
			b.finds(ask("k"), driver.OutcomeOpen)
		}},
		{"claim/repeating is over after its time", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			c.RepeatableFor = lease
			b.wins(c)
			b.shift(c.ID, 2*lease)
			b.finds(repeatable(ask("k")), driver.OutcomeOpen)
		}},
		{"claim/attempts are exhausted", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			c.MaxAttempts = 2
			b.wins(c)
			b.shift(c.ID, 2*lease)
			d := repeatable(ask("k"))
			d.MaxAttempts = 2
			b.wins(d)
			b.shift(c.ID, 2*lease)
			if got := b.finds(repeatable(ask("k")), driver.OutcomeOpen); got.Record.Died != 2 {
				t.Errorf("died %d", got.Record.Died)
			}
		}},
		{"claim/no lease never lapses", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			b.wins(c)
			h.Edit(t, b.s, c.ID, func(r *driver.Record) { r.LeaseUntil = time.Time{} })
			b.finds(repeatable(ask("k")), driver.InFlight)
			b.shift(c.ID, 100*retention)
			b.finds(repeatable(ask("k")), driver.InFlight)
		}},
		{"claim/PROCESSING never expires", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			c.Lease = 1000 * retention
			b.wins(c)
			b.shift(c.ID, 10*retention)
			b.finds(ask("k"), driver.InFlight)
		}},
		{"claim/unknown never expires", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			b.ends(endOf(c, b.wins(c), failure(driver.Unknown, "cut")), true)
			b.shift(c.ID, 10*retention)
			b.finds(ask("k"), driver.OutcomeOpen)
		}},
		{"claim/what expired is absent, and the fence grows", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			first := b.wins(c)
			b.ends(endOf(c, first, success("r")), true)
			b.shift(c.ID, retention-time.Minute)
			b.finds(ask("k"), driver.Done)
			b.shift(c.ID, 2*time.Minute)
			other := ask("k")
			other.Fingerprint = sumOf("other")
			got := b.wins(other)
			if r := got.Record; r.Attempt != 1 || r.Fence <= first.Record.Fence || r.Result.Data != nil || r.Fingerprint != other.Fingerprint {
				t.Errorf("%+v", r)
			}
		}},
		{"claim/a retryable end runs again", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			first := b.wins(c)
			b.ends(endOf(c, first, failure(driver.Retryable, "busy")), true)
			got := b.wins(ask("k"))
			if r := got.Record; got.Takeover || r.Attempt != 2 || r.Died != 0 || r.Fence <= first.Record.Fence || r.Error != "" {
				t.Errorf("%+v", got)
			}
		}},
	}
}

func newOwnerKey() string {
	o := newOwner()
	return string(o[:])
}

func (b *bench) second() driver.Store {
	if b.h.Second == nil {
		return b.s
	}
	return b.h.Second(b, b.s)
}

// race lets many claim one key at once and demands one winner. Its lease is long enough for any clock.
func (b *bench) race(key string, second driver.Store) {
	b.Helper()
	var mu sync.Mutex
	won := 0
	storm(50, func(i int) {
		s := b.s
		if second != nil && i%2 == 0 {
			s = second
		}
		c := ask(key)
		c.Lease = 1000 * retention
		got, err := s.Claim(b.Context(), c)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			b.Errorf("claim: %v", err)
		case got.Verdict == driver.GotClaim:
			won++
		case got.Verdict != driver.InFlight:
			b.Errorf("a loser got verdict %d", got.Verdict)
		}
	})
	if won != 1 {
		b.Fatalf("%d won", won)
	}
}

// storm runs n calls of fn, numbered from 0, at once.
func storm(n int, fn func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			fn(i)
		})
	}
	close(gate)
	wg.Wait()
}
