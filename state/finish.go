package state

import (
	"time"

	"github.com/onceward/onceward/driver"
)

// Renew decides a renewal at now: only a holder of an unlapsed lease renews, and a lease never gets shorter.
func Renew(cur *driver.Record, rn *driver.Renewal, now time.Time) (next driver.Record, ok bool) {
	if cur == nil || cur.Owner != rn.Owner || cur.Fence != rn.Fence || !Held(cur, now) {
		return driver.Record{}, false
	}
	next = *cur
	if until := now.Add(rn.Lease); until.After(next.LeaseUntil) {
		next.LeaseUntil = until
	}
	next.UpdatedAt = now
	return next, true
}

// Finish decides the end of an attempt at now. It is a compare-and-set on (owner, fence) of any record that is not
// final: Processing, unknown, or settled to retryable; so late truth is accepted as long as nobody claimed or
// resolved, lease over or not. A missing row is inserted as finished.
//
// The same finish made twice, because its reply was lost, is applied twice to the same end.
func Finish(cur *driver.Record, f *driver.Finish, now time.Time) (next driver.Record, applied bool, w Write) {
	if cur == nil {
		r := start(nil, &f.Claim, now, 0)
		r.Fence, r.Attempt, r.Died = f.Fence, f.Attempt, f.Died
		r.LeaseUntil = time.Time{}
		end(&r, &f.Outcome, f.Owner(), now)
		return r, true, Insert
	}
	if cur.Fence != f.Fence {
		return *cur, false, Keep
	}
	if cur.Owner != f.Claim.Owner {
		// An attempt's own retryable finish cleared the owner and kept the fence: this is its lost reply, or a
		// different end of an attempt that has already said that nothing happened.
		mine := cur.Owner.IsZero() && cur.Resolution == "" && f.Outcome.Same(cur)
		return *cur, mine, Keep
	}
	if cur.Final() {
		return *cur, f.Outcome.Same(cur), Keep
	}
	r := *cur
	end(&r, &f.Outcome, f.Owner(), now)
	return r, true, Update
}

// Settle decides a settlement at now. A lapse keeps owner and fence, so that late truth is still accepted; a
// resolution replaces both, so that it is not.
func Settle(cur *driver.Record, s *driver.Settlement, now time.Time) (next driver.Record, applied bool, w Write) {
	if cur == nil {
		return driver.Record{}, false, Keep
	}
	if !s.Lapse() && cur.Owner == s.Owner && s.Outcome.Same(cur) {
		return *cur, true, Keep // the reply to this very resolution was lost
	}
	if cur.Fence != s.Fence {
		return *cur, false, Keep
	}
	if s.Lapse() {
		if !Lapsed(cur, now) {
			return *cur, false, Keep
		}
		ok, why := repeatable(cur, now)
		if !ok {
			return lapseUnknown(cur, why, now), true, Update
		}
		r := *cur
		r.Died++
		end(&r, &driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "an attempt died; repeating it is safe"}, r.Owner, now)
		return r, true, Update
	}
	if cur.Status != driver.Fail || cur.Failure != driver.Unknown {
		return *cur, false, Keep
	}
	r := *cur
	end(&r, &s.Outcome, s.Owner, now)
	r.Fence = NextFence(cur.Fence, 0, now)
	r.Resolution = s.Resolution
	if s.Steps != nil {
		r.Steps = s.Steps
		r.StepsVersion++
	}
	return r, true, Update
}

// end writes an outcome. Retention counts from here; an unknown never expires.
func end(r *driver.Record, o *driver.Outcome, owner driver.Owner, now time.Time) {
	r.Status, r.Failure, r.Error = o.Status, o.Failure, o.Error
	r.Result, r.Owner = o.Result, owner
	r.UpdatedAt = now
	r.CompletedAt, r.ExpiresAt = time.Time{}, time.Time{}
	if r.Finished() {
		r.CompletedAt, r.ExpiresAt = now, now.Add(r.Retention)
	}
}
