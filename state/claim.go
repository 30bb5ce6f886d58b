package state

import (
	"time"

	"github.com/onceward/onceward/driver"
)

// Write says what a store has to do with the record that a transition returned.
type Write uint8

const (
	Keep   Write = iota // nothing
	Insert              // there was no row
	Update              // the row that was read, if it is unchanged
)

// Claim decides a claim at now. cur is the stored record, nil when there is no row; floor is the highest fence that
// a purge deleted. It returns the record as it stands afterwards, the verdict, whether a dead attempt was taken
// over, and what is to be written.
//
// A fingerprint is compared before anything else: another request under the same key is a mismatch even in flight.
func Claim(cur *driver.Record, c *driver.Claim, now time.Time, floor int64) (next driver.Record, v driver.Verdict, takeover bool, w Write) {
	if cur == nil {
		return start(nil, c, now, floor), driver.GotClaim, false, Insert
	}
	if Expired(cur, now) {
		return start(cur, c, now, floor), driver.GotClaim, false, Update
	}
	if cur.Fingerprint.Version() != c.Fingerprint.Version() {
		return *cur, driver.OtherVersion, false, Keep
	}
	if cur.Fingerprint != c.Fingerprint {
		return *cur, driver.Mismatch, false, Keep
	}
	switch {
	case cur.Status == driver.Success:
		return *cur, driver.Done, false, Keep
	case cur.Status == driver.Fail && cur.Failure == driver.Final:
		return *cur, driver.Refused, false, Keep
	case cur.Unclear():
		return *cur, driver.OutcomeOpen, false, Keep
	case cur.Status == driver.Fail: // retryable
		r := again(cur, c, now, floor, cur.Died)
		if cur.Owner.IsZero() || cur.Resolution != "" { // somebody has said that nothing happened, and not a lapse
			r.Steps = ended(r.Steps)
		} else {
			keepEarlier(&r, cur.RepeatableUntil)
		}
		return r, driver.GotClaim, false, Update
	case cur.Owner == c.Owner && Held(cur, now):
		return *cur, driver.GotClaim, cur.Died > 0, Keep // the reply to this very claim was lost
	case !Lapsed(cur, now):
		return *cur, driver.InFlight, false, Keep
	}
	if ok, why := repeatable(cur, now); !ok {
		return lapseUnknown(cur, why, now), driver.OutcomeOpen, false, Update
	}
	r := again(cur, c, now, floor, cur.Died+1)
	keepEarlier(&r, cur.RepeatableUntil)
	return r, driver.GotClaim, true, Update
}

// keepEarlier keeps the end of the time in which a begun step may be called again: it counts from its first call, which a
// later attempt does not move.
func keepEarlier(r *driver.Record, until time.Time) {
	if len(r.Steps) > 0 && !until.IsZero() && (r.RepeatableUntil.IsZero() || until.Before(r.RepeatableUntil)) {
		r.RepeatableUntil = until
	}
}

// start makes the record of a first attempt; cur is an expired record in its place, or nil.
func start(cur *driver.Record, c *driver.Claim, now time.Time, floor int64) driver.Record {
	var previous int64
	if cur != nil {
		previous = cur.Fence
	}
	r := driver.Record{
		ID: c.ID, Scope: c.Scope, Operation: c.Operation, Key: c.Key, Fingerprint: c.Fingerprint,
		Attempt: 1, CreatedAt: now, Fence: NextFence(previous, floor, now),
	}
	hold(&r, c, now)
	return r
}

// again makes the record of a further attempt.
func again(cur *driver.Record, c *driver.Claim, now time.Time, floor int64, died int) driver.Record {
	r := *cur
	r.Attempt++
	r.Died = died
	r.Fence = NextFence(cur.Fence, floor, now)
	hold(&r, c, now)
	return r
}

// ended returns the steps that have a result.
func ended(all []driver.Step) (done []driver.Step) {
	for i := range all {
		if all[i].State != driver.StepBegun {
			done = append(done, all[i])
		}
	}
	return done
}

func hold(r *driver.Record, c *driver.Claim, now time.Time) {
	r.Status, r.Failure = driver.Processing, 0
	r.Owner, r.ClaimedAt = c.Owner, now
	r.MaxAttempts = c.MaxAttempts
	r.Lease, r.LeaseUntil = c.Lease, now.Add(c.Lease)
	r.DeadlineAt = now.Add(c.Timeout)
	r.OnLapse = c.OnLapse
	r.RepeatableUntil = time.Time{}
	if c.RepeatableFor > 0 {
		// The first call may have been made as soon as the first attempt had claimed; after a resolution there was none yet.
		first := r.CreatedAt
		if r.Resolution != "" {
			first = now
		}
		r.RepeatableUntil = first.Add(c.RepeatableFor)
	}
	r.Retention = c.Retention
	r.Request = c.Request
	r.Result, r.Error, r.Resolution = driver.Result{}, "", ""
	r.UpdatedAt, r.CompletedAt, r.ExpiresAt = now, time.Time{}, time.Time{}
}

func lapseUnknown(cur *driver.Record, why string, now time.Time) driver.Record {
	r := *cur
	r.Status, r.Failure = driver.Fail, driver.Unknown
	r.Died++
	r.Error = why
	r.UpdatedAt, r.CompletedAt, r.ExpiresAt = now, time.Time{}, time.Time{}
	return r
}
