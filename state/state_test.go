package state_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/state"
)

var epoch = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

const lease = time.Minute

func sum(b byte) (s fingerprint.Sum) {
	s[0], s[1] = fingerprint.Version, b
	return s
}

func claim(owner byte) *driver.Claim {
	return &driver.Claim{Key: "k", Fingerprint: sum(1), Owner: driver.Owner{owner}, Lease: lease, Timeout: lease, Retention: time.Hour, MaxAttempts: 3}
}

// TestClaimTable is the table of what a claim finds, row by row.
func TestClaimTable(t *testing.T) {
	t.Parallel()
	after := func(change func(*driver.Record)) *driver.Record {
		r, _, _, _ := state.Claim(nil, claim(1), epoch, 0)
		change(&r)
		return &r
	}
	finished := func(s driver.Status, f driver.Failure) *driver.Record {
		return after(func(r *driver.Record) {
			r.Status, r.Failure, r.CompletedAt = s, f, epoch
			if r.Finished() {
				r.ExpiresAt = epoch.Add(time.Hour)
			}
		})
	}
	repeat := func(r *driver.Record) { r.OnLapse = driver.LapseRepeat }
	none := func(*driver.Record) {}
	for _, c := range []struct {
		name        string
		cur         *driver.Record
		wait        time.Duration
		same, other driver.Verdict
	}{
		{"nothing", nil, 0, driver.GotClaim, driver.GotClaim},
		{"success", finished(driver.Success, 0), time.Minute, driver.Done, driver.Mismatch},
		{"success, a moment before it expires", finished(driver.Success, 0), time.Hour - 1, driver.Done, driver.Mismatch},
		{"success, expired", finished(driver.Success, 0), time.Hour, driver.GotClaim, driver.GotClaim},
		{"final", finished(driver.Fail, driver.Final), time.Minute, driver.Refused, driver.Mismatch},
		{"final, expired", finished(driver.Fail, driver.Final), time.Hour, driver.GotClaim, driver.GotClaim},
		{"retryable", finished(driver.Fail, driver.Retryable), time.Minute, driver.GotClaim, driver.Mismatch},
		{"unknown", finished(driver.Fail, driver.Unknown), 1000 * time.Hour, driver.OutcomeOpen, driver.Mismatch},
		{"held", after(none), lease - 1, driver.InFlight, driver.Mismatch},
		{"in its grace", after(repeat), lease + lease/3 - 1, driver.InFlight, driver.Mismatch},
		{"lapsed, repeatable", after(repeat), lease + lease/3, driver.GotClaim, driver.Mismatch},
		{"lapsed, not repeatable", after(none), lease + lease/3, driver.OutcomeOpen, driver.Mismatch},
		{"lapsed, repeatable no more", after(func(r *driver.Record) { repeat(r); r.RepeatableUntil = epoch.Add(lease) }), 2 * lease, driver.OutcomeOpen, driver.Mismatch},
		{"lapsed, attempts exhausted", after(func(r *driver.Record) { repeat(r); r.Died = 2 }), 2 * lease, driver.OutcomeOpen, driver.Mismatch},
		{"no lease", after(func(r *driver.Record) { repeat(r); r.LeaseUntil = time.Time{} }), 1000 * time.Hour, driver.InFlight, driver.Mismatch},
	} {
		for print, want := range map[byte]driver.Verdict{1: c.same, 2: c.other} {
			ask := claim(9)
			ask.Fingerprint = sum(print)
			next, got, takeover, w := state.Claim(c.cur, ask, epoch.Add(c.wait), 0)
			if got != want || takeover != (c.name == "lapsed, repeatable" && want == driver.GotClaim) {
				t.Errorf("%s, fingerprint %d: verdict %d, takeover %v; want verdict %d", c.name, print, got, takeover, want)
			}
			if want == driver.OutcomeOpen && w == state.Update && !next.UpdatedAt.Equal(epoch.Add(c.wait)) {
				t.Errorf("%s: updated at %v", c.name, next.UpdatedAt)
			}
			if got == driver.GotClaim && (next.Owner != ask.Owner || next.Status != driver.Processing || w == state.Keep || c.cur != nil && next.Fence <= c.cur.Fence) {
				t.Errorf("%s, fingerprint %d: %+v", c.name, print, next)
			}
			if got == driver.Mismatch && w != state.Keep {
				t.Errorf("%s: a mismatch writes", c.name)
			}
		}
	}
	old := after(none)
	old.Fingerprint[0]++
	if _, v, takeover, w := state.Claim(old, claim(9), epoch, 0); v != driver.OtherVersion || takeover || w != state.Keep {
		t.Errorf("another version: verdict %d, write %d", v, w)
	}
	if r, _, _, _ := state.Claim(nil, claim(1), epoch, epoch.UnixMicro()+7); r.Fence != epoch.UnixMicro()+8 {
		t.Errorf("the fence %d is not above the floor", r.Fence)
	}
}

// TestClaimWrites is what a claim makes of each record that it may have.
func TestClaimWrites(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Hour
	now := epoch.Add(wait)
	died := claimed(driver.LapseRepeat)
	died.Died = 1
	for _, c := range []struct {
		name          string
		cur           *driver.Record
		attempt, died int
		takeover      bool
		w             state.Write
		created       time.Time
	}{
		{"nothing", nil, 1, 0, false, state.Insert, now},
		{"success, expired", ended(success), 1, 0, false, state.Update, now},
		{"retryable", ended(retryable), 2, 0, false, state.Update, epoch},
		{"lapsed", died, 2, 2, true, state.Update, epoch},
	} {
		if c.name == "retryable" { // in its retention
			c.cur.ExpiresAt = now.Add(1)
		}
		ask := claim(9)
		ask.Timeout, ask.MaxAttempts, ask.Retention, ask.Request = 7*lease, 11, 5*time.Hour, []byte("again")
		ask.OnLapse, ask.RepeatableFor, ask.Lease = driver.LapseRepeat, 3*time.Hour, 2*lease
		ask.Operation, ask.Scope, ask.ID = "pay", driver.Scope{Tenant: "t"}, driver.ID{1}
		if c.cur != nil {
			c.cur.Operation, c.cur.Scope, c.cur.ID = ask.Operation, ask.Scope, ask.ID
		}
		next, v, takeover, w := state.Claim(c.cur, ask, now, 0)
		want := driver.Record{
			ID: ask.ID, Scope: ask.Scope, Operation: "pay", Key: "k", Status: driver.Processing, Fingerprint: sum(1),
			Attempt: c.attempt, Died: c.died, MaxAttempts: 11, Fence: now.UnixMicro(), Owner: driver.Owner{9},
			Lease: 2 * lease, LeaseUntil: now.Add(2 * lease), DeadlineAt: now.Add(7 * lease), OnLapse: driver.LapseRepeat,
			RepeatableUntil: c.created.Add(3 * time.Hour), Retention: 5 * time.Hour, Request: []byte("again"), CreatedAt: c.created, ClaimedAt: now, UpdatedAt: now,
		}
		if v != driver.GotClaim || takeover != c.takeover || w != c.w || !reflect.DeepEqual(next, want) {
			t.Errorf("%s: verdict %d, takeover %v, write %d\n%+v, want\n%+v", c.name, v, takeover, w, next, want)
		}
	}
	bounded := ended(retryable)
	bounded.RepeatableUntil = now
	bounded.ExpiresAt = now.Add(1)
	if next, _, _, _ := state.Claim(bounded, claim(9), now, 0); !next.RepeatableUntil.IsZero() {
		t.Errorf("an attempt without a bound got that of the one before: %v", next.RepeatableUntil)
	}
	ahead := ended(retryable)
	ahead.Fence = now.UnixMicro() + 100
	ahead.ExpiresAt = now.Add(1)
	if next, _, _, _ := state.Claim(ahead, claim(9), now, 0); next.Fence != ahead.Fence+1 {
		t.Errorf("under a clock that was set back, fence %d after %d", next.Fence, ahead.Fence)
	}
}

// TestClaimMadeAgain: a claim whose reply was lost is answered again while its lease lives, and is a dead one after.
func TestClaimMadeAgain(t *testing.T) {
	t.Parallel()
	c := claim(1)
	first, _, _, _ := state.Claim(nil, c, epoch, 0)
	for _, x := range []struct {
		wait time.Duration
		want driver.Verdict
		w    state.Write
	}{{lease - 1, driver.GotClaim, state.Keep}, {lease, driver.InFlight, state.Keep}, {2 * lease, driver.OutcomeOpen, state.Update}} {
		next, v, takeover, w := state.Claim(&first, c, epoch.Add(x.wait), 0)
		if v != x.want || w != x.w || takeover || w == state.Keep && !reflect.DeepEqual(next, first) {
			t.Errorf("after %v: verdict %d, write %d, %+v", x.wait, v, w, next)
		}
	}
}

// FuzzInvariants runs random sequences of calls and holds what must hold whatever happens.
func FuzzInvariants(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var cur *driver.Record
		var past []driver.Finish
		now := epoch
		for range 200 {
			now = now.Add([]time.Duration{0, time.Second, lease / 2, 2 * lease, 2 * time.Hour}[rng.IntN(5)])
			var next driver.Record
			wrote := false
			switch rng.IntN(5) {
			case 0, 1:
				c := claim(byte(rng.IntN(250) + 1))
				c.Owner[1] = byte(rng.IntN(256))
				c.Fingerprint = sum(byte(rng.IntN(4) / 3))
				if rng.IntN(2) == 0 {
					c.OnLapse = driver.LapseRepeat
				}
				var v driver.Verdict
				var w state.Write
				next, v, _, w = state.Claim(cur, c, now, 0)
				wrote = w != state.Keep
				if cur != nil && state.Held(cur, now) && cur.Owner != c.Owner && v == driver.GotClaim {
					t.Fatalf("a held claim was taken: %+v", cur)
				}
				if cur != nil && cur.Final() && !state.Expired(cur, now) && wrote {
					t.Fatalf("a claim changed a final record: %+v", cur)
				}
				if v == driver.GotClaim && w != state.Keep && cur != nil && next.Attempt != cur.Attempt+1 && !state.Expired(cur, now) ||
					v == driver.GotClaim && (cur == nil || state.Expired(cur, now)) && next.Attempt != 1 {
					t.Fatalf("attempt %d after %+v", next.Attempt, cur)
				}
				if v == driver.GotClaim && w != state.Keep && cur != nil && next.Fence <= cur.Fence {
					t.Fatalf("a claim with fence %d after %d", next.Fence, cur.Fence)
				}
				if v != driver.GotClaim && wrote && next.Attempt != cur.Attempt {
					t.Fatalf("attempt %d after %d without a claim", next.Attempt, cur.Attempt)
				}
				if v == driver.GotClaim {
					past = append(past, driver.Finish{Claim: *c, Fence: next.Fence, Attempt: next.Attempt, Died: next.Died})
				}
			case 2:
				if len(past) == 0 {
					continue
				}
				e := past[rng.IntN(len(past))]
				e.Outcome = []driver.Outcome{
					{Status: driver.Success, Result: driver.Result{Data: []byte{byte(rng.IntN(3))}}}, {Status: driver.Fail, Failure: driver.Final},
					{Status: driver.Fail, Failure: driver.Retryable}, {Status: driver.Fail, Failure: driver.Unknown},
				}[rng.IntN(4)]
				var w state.Write
				var applied bool
				next, applied, w = state.Finish(cur, &e, now)
				wrote = w != state.Keep
				if wrote && (cur.Owner != e.Claim.Owner || cur.Fence != e.Fence || cur.Final()) || wrote && !applied {
					t.Fatalf("%+v was ended by %+v", cur, e)
				}
			case 3:
				if cur == nil {
					continue
				}
				rn := driver.Renewal{Owner: cur.Owner, Fence: cur.Fence - int64(rng.IntN(2)), Lease: lease}
				next, wrote = state.Renew(cur, &rn, now)
				if wrote && (!state.Held(cur, now) || next.LeaseUntil.Before(cur.LeaseUntil)) {
					t.Fatalf("renewed %+v at %v", cur, now)
				}
			case 4:
				if cur == nil {
					continue
				}
				s := driver.Settlement{Fence: cur.Fence}
				if rng.IntN(2) == 0 {
					s.Outcome, s.Owner, s.Resolution = driver.Outcome{Status: driver.Fail, Failure: driver.Final}, driver.Owner{0, 0, 1}, "x"
				}
				var w state.Write
				next, _, w = state.Settle(cur, &s, now)
				wrote = w != state.Keep
				if wrote && cur.Final() {
					t.Fatalf("a final record was settled: %+v", cur)
				}
			}
			if !wrote {
				continue
			}
			hold(t, cur, &next)
			cur = &next
		}
	})
}

func hold(t *testing.T, cur, next *driver.Record) {
	t.Helper()
	if cur != nil && next.Fence < cur.Fence {
		t.Fatalf("the fence went back: %+v to %+v", cur, next)
	}
	if cur != nil && cur.Final() && next.Status != driver.Processing {
		t.Fatalf("a final record became another without a claim: %+v to %+v", cur, next)
	}
	switch {
	case next.Status == driver.Processing && (next.Owner.IsZero() || !next.ExpiresAt.IsZero() || next.Failure != 0 || next.Result.Data != nil):
		t.Fatalf("no running record: %+v", next)
	case next.Finished() && next.ExpiresAt.IsZero(), next.Failure == driver.Unknown && !next.ExpiresAt.IsZero():
		t.Fatalf("its time: %+v", next)
	case (next.Status == driver.Fail) != (next.Failure != 0):
		t.Fatalf("status and failure: %+v", next)
	}
}
