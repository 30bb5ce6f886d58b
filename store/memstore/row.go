package memstore

import (
	"math"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/state"
)

// row is a driver.Record as it is kept, in three fifths of the bytes and a third of the pointers: what a million records
// cost is memory, and the collector's walks through it. Their IDs are the keys of the map.
type row struct {
	scope     driver.Scope
	operation string
	key       string

	codec string
	meta  []byte
	data  []byte
	rare  *rare // nil: all of it is empty

	fingerprint fingerprint.Sum
	owner       driver.Owner
	tombstone   bool
	status      driver.Status
	failure     driver.Failure
	onLapse     driver.OnLapse

	attempt, died, maxAttempts int
	fence                      int64
	lease, retention           time.Duration

	leaseUntil, deadlineAt, repeatableUntil                 instant
	createdAt, claimedAt, updatedAt, completedAt, expiresAt instant
}

// rare is what few records have.
type rare struct {
	request         []byte
	steps           []driver.Step
	stepsVersion    int64
	err, resolution string
}

// set makes the row say what r says.
func (w *row) set(r *driver.Record) {
	w.scope, w.operation, w.key = r.Scope, r.Operation, r.Key
	w.codec, w.meta, w.data, w.tombstone = r.Result.Codec, r.Result.Meta, r.Result.Data, r.Result.Tombstone
	w.rare = nil
	if r.Request != nil || r.Steps != nil || r.StepsVersion != 0 || r.Error != "" || r.Resolution != "" {
		w.rare = &rare{r.Request, r.Steps, r.StepsVersion, r.Error, r.Resolution}
	}
	w.fingerprint, w.owner, w.status, w.failure, w.onLapse = r.Fingerprint, r.Owner, r.Status, r.Failure, r.OnLapse
	w.attempt, w.died, w.maxAttempts, w.fence = r.Attempt, r.Died, r.MaxAttempts, r.Fence
	w.lease, w.retention = r.Lease, r.Retention
	w.leaseUntil, w.deadlineAt, w.repeatableUntil = instantOf(r.LeaseUntil), instantOf(r.DeadlineAt), instantOf(r.RepeatableUntil)
	w.createdAt, w.claimedAt, w.updatedAt = instantOf(r.CreatedAt), instantOf(r.ClaimedAt), instantOf(r.UpdatedAt)
	w.completedAt, w.expiresAt = instantOf(r.CompletedAt), instantOf(r.ExpiresAt)
}

// tell makes r, which is zero, the record that the row of that id is.
func (w *row) tell(id *driver.ID, r *driver.Record) {
	r.ID, r.Scope, r.Operation, r.Key = *id, w.scope, w.operation, w.key
	r.Result.Codec, r.Result.Meta, r.Result.Data, r.Result.Tombstone = w.codec, w.meta, w.data, w.tombstone
	if w.rare != nil {
		r.Request, r.Steps, r.StepsVersion, r.Error, r.Resolution = w.rare.request, w.rare.steps, w.rare.stepsVersion, w.rare.err, w.rare.resolution
	}
	r.Fingerprint, r.Owner, r.Status, r.Failure, r.OnLapse = w.fingerprint, w.owner, w.status, w.failure, w.onLapse
	r.Attempt, r.Died, r.MaxAttempts, r.Fence = w.attempt, w.died, w.maxAttempts, w.fence
	r.Lease, r.Retention = w.lease, w.retention
	r.LeaseUntil, r.DeadlineAt, r.RepeatableUntil = w.leaseUntil.time(), w.deadlineAt.time(), w.repeatableUntil.time()
	r.CreatedAt, r.ClaimedAt, r.UpdatedAt = w.createdAt.time(), w.claimedAt.time(), w.updatedAt.time()
	r.CompletedAt, r.ExpiresAt = w.completedAt.time(), w.expiresAt.time()
}

// expired is state.Expired of the row, at the cost of what that looks at.
func (w *row) expired(now time.Time) bool {
	return state.Expired(&driver.Record{Status: w.status, Failure: w.failure, ExpiresAt: w.expiresAt.time()}, now)
}

// instant is a time in nanoseconds around the year 2100: from 1808 to 2392, so that the longest duration, of 292 years,
// may be added to any now of this century. What lies beyond is moved to the end.
type instant int64

const (
	never  instant = math.MinInt64 // the zero time
	origin         = 4102444800    // 2100-01-01 in Unix seconds
	reach          = math.MaxInt64/int64(time.Second) - 1
)

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return never
	}
	return instant(min(max(t.Unix()-origin, -reach), reach)*int64(time.Second) + int64(t.Nanosecond()))
}

func (i instant) time() time.Time {
	if i == never {
		return time.Time{}
	}
	return time.Unix(origin+int64(i)/int64(time.Second), int64(i)%int64(time.Second)).UTC()
}
