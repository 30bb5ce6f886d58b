package state

import (
	"time"

	"github.com/onceward/onceward/driver"
)

// Progress decides at now what an attempt writes about its steps. An intent needs an unlapsed lease; a result is taken like
// an attempt's end, lease over or not, as long as nobody claimed or resolved since and the record is not final. An unlapsed
// lease is renewed, and never gets shorter. A write that a later one has overtaken is refused.
func Progress(cur *driver.Record, p *driver.Progress, now time.Time) (next driver.Record, ok bool) {
	if cur == nil || cur.Owner != p.Owner || cur.Fence != p.Fence || cur.Final() || p.Version < cur.StepsVersion || p.Intent && !Held(cur, now) {
		return driver.Record{}, false
	}
	next = *cur
	if until := now.Add(p.Lease); Held(cur, now) && until.After(next.LeaseUntil) {
		next.LeaseUntil = until
	}
	next.Steps, next.StepsVersion = p.Steps, p.Version
	next.OnLapse, next.RepeatableUntil = p.OnLapse, time.Time{}
	if p.RepeatableFor > 0 {
		next.RepeatableUntil = now.Add(p.RepeatableFor)
	}
	next.UpdatedAt = now
	return next, true
}
