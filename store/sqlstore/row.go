package sqlstore

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/driver"
)

// timeLayout is how times stand in a table: UTC, readable, in order as text.
const timeLayout = "2006-01-02 15:04:05.000000"

func bindTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(timeLayout)
}

// bindText keeps any bytes exactly: text as text, so that a person can read it, the rest as a blob.
func bindText(s string) any {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return []byte(s)
}

func bindBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// row is a record on its way out of a table.
type row struct {
	now                              int64 // milliseconds
	id, fingerprint, owner           []byte
	namespace, tenant, caller        []byte
	operation, key                   []byte
	status, failure, onLapse         *string
	attempt, died, maxAttempts       *int64
	fence, leaseUS, retentionUS      *int64
	leaseUntil, deadlineAt           *string
	repeatableUntil                  *string
	codec                            *string
	meta, result, request            []byte
	hasResult, tombstone             *bool
	errorText, resolution            []byte
	created, updated, completed, exp *string
}

func (r *row) targets() []any {
	return []any{
		&r.id, &r.namespace, &r.tenant, &r.caller, &r.operation, &r.key,
		&r.status, &r.failure, &r.fingerprint, &r.attempt, &r.died, &r.maxAttempts, &r.fence, &r.owner,
		&r.leaseUS, &r.leaseUntil, &r.deadlineAt, &r.onLapse, &r.repeatableUntil, &r.retentionUS,
		&r.codec, &r.meta, &r.result, &r.hasResult, &r.tombstone,
		&r.request, &r.errorText, &r.resolution, &r.created, &r.updated, &r.completed, &r.exp,
	}
}

func (r *row) clock() time.Time { return time.UnixMilli(r.now).UTC() }

// record turns the row into a record; nil when there is no row. A row that nobody of ours writes is an error.
func (r *row) record() (*driver.Record, error) {
	if r.id == nil {
		return nil, nil
	}
	var rec driver.Record
	if copy(rec.ID[:], r.id) != len(rec.ID) || len(r.id) != len(rec.ID) {
		return nil, fmt.Errorf("onceward: damaged record: its id has %d bytes, not %d", len(r.id), len(rec.ID))
	}
	bad := func(column string) error {
		return fmt.Errorf("onceward: damaged record %s: column %s holds what Onceward never writes", rec.ID, column)
	}
	rec.Scope = driver.Scope{Namespace: string(r.namespace), Tenant: string(r.tenant), Caller: string(r.caller)}
	rec.Operation, rec.Key = string(r.operation), string(r.key)
	var ok bool
	if rec.Status, ok = driver.ParseStatus(deref(r.status)); !ok {
		return nil, bad("status")
	}
	if rec.Failure, ok = driver.ParseFailure(deref(r.failure)); !ok || (rec.Status == driver.Fail) != (rec.Failure != 0) {
		return nil, bad("failure")
	}
	if rec.OnLapse, ok = driver.ParseOnLapse(deref(r.onLapse)); !ok {
		return nil, bad("on_lapse")
	}
	if copy(rec.Fingerprint[:], r.fingerprint) != len(rec.Fingerprint) || len(r.fingerprint) != len(rec.Fingerprint) {
		return nil, bad("fingerprint")
	}
	if copy(rec.Owner[:], r.owner) != len(rec.Owner) || len(r.owner) != len(rec.Owner) {
		return nil, bad("owner")
	}
	rec.Attempt, rec.Died, rec.MaxAttempts = int(deref(r.attempt)), int(deref(r.died)), int(deref(r.maxAttempts))
	rec.Fence = deref(r.fence)
	rec.Lease = time.Duration(deref(r.leaseUS)) * time.Microsecond
	rec.Retention = time.Duration(deref(r.retentionUS)) * time.Microsecond
	rec.Result = driver.Result{Codec: deref(r.codec), Meta: r.meta, Data: r.result, Tombstone: deref(r.tombstone)}
	if rec.Result.Data == nil && deref(r.hasResult) {
		rec.Result.Data = []byte{}
	}
	rec.Request = r.request
	rec.Error, rec.Resolution = string(r.errorText), string(r.resolution)
	for _, t := range [...]struct {
		column string
		text   *string
		into   *time.Time
	}{
		{"lease_until", r.leaseUntil, &rec.LeaseUntil}, {"deadline_at", r.deadlineAt, &rec.DeadlineAt},
		{"repeatable_until", r.repeatableUntil, &rec.RepeatableUntil},
		{"created_at", r.created, &rec.CreatedAt}, {"updated_at", r.updated, &rec.UpdatedAt},
		{"completed_at", r.completed, &rec.CompletedAt}, {"expires_at", r.exp, &rec.ExpiresAt},
	} {
		if t.text == nil {
			continue
		}
		var err error
		if *t.into, err = time.Parse(timeLayout, *t.text); err != nil {
			return nil, bad(t.column)
		}
	}
	return &rec, nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// changing returns the arguments of update.sql before the id.
func changing(r *driver.Record) []any {
	return []any{
		r.Status.String(), r.Failure.String(), r.Fingerprint[:], r.Attempt, r.Died, r.MaxAttempts, r.Fence, r.Owner[:],
		r.Lease.Microseconds(), bindTime(r.LeaseUntil), bindTime(r.DeadlineAt), r.OnLapse.String(),
		bindTime(r.RepeatableUntil), r.Retention.Microseconds(),
		r.Result.Codec, bindBytes(r.Result.Meta), bindBytes(r.Result.Data), r.Result.Tombstone,
		bindBytes(r.Request), bindText(r.Error), bindText(r.Resolution),
		bindTime(r.CreatedAt), bindTime(r.UpdatedAt), bindTime(r.CompletedAt), bindTime(r.ExpiresAt),
	}
}

func insertArgs(r *driver.Record) []any {
	args := []any{
		bindText(r.Scope.Namespace), bindText(r.Scope.Tenant), bindText(r.Scope.Caller),
		bindText(r.Operation), bindText(r.Key),
	}
	return append(append(args, changing(r)...), r.ID[:])
}

func updateArgs(r *driver.Record) []any { return append(changing(r), r.ID[:]) }

func finishArgs(r *driver.Record) []any {
	return []any{
		r.Status.String(), r.Failure.String(), r.Owner[:], r.Result.Codec, bindBytes(r.Result.Meta),
		bindBytes(r.Result.Data), r.Result.Tombstone, bindText(r.Error),
		bindTime(r.UpdatedAt), bindTime(r.CompletedAt), bindTime(r.ExpiresAt), r.ID[:],
	}
}
