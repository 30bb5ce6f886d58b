package state

import (
	"strings"
	"time"

	"github.com/onceward/onceward/driver"
)

// Grace is how long after its lease a dead attempt is left alone: a third of the lease.
func Grace(lease time.Duration) time.Duration { return lease / 3 }

// Lapsed reports whether r is Processing and its lease and grace are over at now. A missing lease never lapses.
func Lapsed(r *driver.Record, now time.Time) bool {
	return r.Status == driver.Processing && !r.LeaseUntil.IsZero() && !now.Before(r.LeaseUntil.Add(Grace(r.Lease)))
}

// Held reports whether r is Processing under a lease that is not over at now (grace does not count).
func Held(r *driver.Record, now time.Time) bool {
	return r.Status == driver.Processing && (r.LeaseUntil.IsZero() || now.Before(r.LeaseUntil))
}

// Expired reports whether r is logically absent at now: finished, and past its retention.
func Expired(r *driver.Record, now time.Time) bool {
	return r.Finished() && !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
}

// NextFence returns the fence of a claim or resolution at now. previous is the record's fence, floor the highest
// fence that was ever purged; both zero when there is none.
func NextFence(previous, floor int64, now time.Time) int64 {
	return max(previous+1, floor+1, now.UnixMicro())
}

// repeatable reports whether a lapsed r may run once more, and if not, why.
func repeatable(r *driver.Record, now time.Time) (ok bool, why string) {
	switch {
	case r.OnLapse != driver.LapseRepeat:
		return false, "an attempt died and " + barred(r)
	case !r.RepeatableUntil.IsZero() && !now.Before(r.RepeatableUntil):
		return false, "an attempt died and the time in which repeating is safe is over"
	case r.MaxAttempts > 0 && r.Died+1 >= r.MaxAttempts:
		return false, "attempts exhausted"
	}
	return true, ""
}

// barred says why r may not run once more.
func barred(r *driver.Record) string {
	var open []string
	for i := range r.Steps {
		if r.Steps[i].State == driver.StepBegun {
			open = append(open, "step "+r.Steps[i].Name+" has begun and has no result")
		}
	}
	if open == nil {
		return "repeating it is not known to be safe"
	}
	return strings.Join(open, ", ")
}

// Matches reports whether a scan for which wants r at now.
func Matches(which driver.Which, r *driver.Record, now time.Time) bool {
	switch which {
	case driver.Lapsed:
		return Lapsed(r, now)
	case driver.Open:
		return r.Status == driver.Processing
	case driver.Unclear:
		return r.Unclear()
	case driver.Due:
		return r.Status == driver.Processing || r.Unclear() || Expired(r, now)
	case driver.All:
	}
	return true
}
