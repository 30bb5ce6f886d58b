package sqlstore

import (
	sqldriver "database/sql/driver"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/driver"
)

// timeLayout is how times are written: UTC, readable, in order as text.
const timeLayout = "2006-01-02 15:04:05.000000"

func bindTime(t time.Time) sqldriver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(timeLayout)
}

// hexMark begins text that a text column can't hold. Text that begins so itself is written in the same way.
const hexMark = `\x`

// bindText keeps any bytes exactly: text as text, so that a person can read it, the rest in hex.
func bindText(s string) sqldriver.Value {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, hexMark) {
		return s
	}
	return hexMark + hex.EncodeToString([]byte(s))
}

func bindBytes(b []byte) sqldriver.Value {
	if b == nil {
		return nil
	}
	return b
}

func bindBool(b bool) sqldriver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}

// none is a duration that SQL takes for no time.
func orNone(d time.Duration, some bool) sqldriver.Value {
	if !some {
		return nil
	}
	return d.Microseconds()
}

// beginArgs are those of the statement that claims, on servers: the server adds the durations to its clock.
func beginArgs(c *driver.Claim) []sqldriver.Value {
	return []sqldriver.Value{
		c.ID[:], bindText(c.Scope.Namespace), bindText(c.Scope.Tenant), bindText(c.Scope.Caller),
		bindText(c.Operation), bindText(c.Key), c.Fingerprint[:], int64(c.MaxAttempts), c.Owner[:],
		c.Lease.Microseconds(), c.Lease.Microseconds(), c.Timeout.Microseconds(), c.OnLapse.String(),
		orNone(c.RepeatableFor, c.RepeatableFor > 0), c.Retention.Microseconds(), bindBytes(c.Request),
	}
}

// endArgs are those of finish.sql on servers.
func endArgs(f *driver.Finish) []sqldriver.Value {
	o := &f.Outcome
	owner := f.Owner()
	return []sqldriver.Value{
		o.Status.String(), o.Failure.String(), owner[:], bindText(o.Result.Codec), bindBytes(o.Result.Meta),
		bindBytes(o.Result.Data), bindBool(o.Result.Tombstone), bindText(o.Error),
		orNone(0, o.Failure != driver.Unknown), orNone(f.Claim.Retention, o.Failure != driver.Unknown),
		f.Claim.ID[:], f.Claim.Owner[:], f.Fence,
	}
}

// insertArgs are those of insert.sql on SQLite, which makes a Processing record.
func insertArgs(r *driver.Record) []sqldriver.Value {
	return []sqldriver.Value{
		r.ID[:], bindText(r.Scope.Namespace), bindText(r.Scope.Tenant), bindText(r.Scope.Caller),
		bindText(r.Operation), bindText(r.Key), r.Fingerprint[:], int64(r.MaxAttempts), r.Owner[:],
		r.Lease.Microseconds(), bindTime(r.LeaseUntil), bindTime(r.DeadlineAt), r.OnLapse.String(),
		bindTime(r.RepeatableUntil), r.Retention.Microseconds(), bindBytes(r.Request), r.Fence, bindTime(r.CreatedAt),
	}
}

// finishArgs are those of finish.sql on SQLite.
func finishArgs(r *driver.Record, owner driver.Owner) []sqldriver.Value {
	return []sqldriver.Value{
		r.Status.String(), r.Failure.String(), r.Owner[:], bindText(r.Result.Codec), bindBytes(r.Result.Meta),
		bindBytes(r.Result.Data), bindBool(r.Result.Tombstone), bindText(r.Error),
		bindTime(r.UpdatedAt), bindTime(r.CompletedAt), bindTime(r.ExpiresAt), r.ID[:], owner[:], r.Fence,
	}
}

// updateArgs are everything but the identity.
func (s *Store) updateArgs(r *driver.Record) []sqldriver.Value {
	return []sqldriver.Value{
		r.Status.String(), r.Failure.String(), r.Fingerprint[:],
		int64(r.Attempt), int64(r.Died), int64(r.MaxAttempts), r.Fence, r.Owner[:],
		r.Lease.Microseconds(), s.bindTime(r.LeaseUntil), s.bindTime(r.DeadlineAt), r.OnLapse.String(),
		s.bindTime(r.RepeatableUntil), r.Retention.Microseconds(),
		bindText(r.Result.Codec), bindBytes(r.Result.Meta), bindBytes(r.Result.Data), bindBool(r.Result.Tombstone),
		bindBytes(r.Request), bindText(r.Error), bindText(r.Resolution), bindSteps(r.Steps, r.StepsVersion),
		s.bindTime(r.CreatedAt), s.bindTime(r.ClaimedAt), s.bindTime(r.UpdatedAt), s.bindTime(r.CompletedAt), s.bindTime(r.ExpiresAt),
	}
}

// putArgs are a whole record.
func (s *Store) putArgs(r *driver.Record) []sqldriver.Value {
	return append([]sqldriver.Value{
		r.ID[:], bindText(r.Scope.Namespace), bindText(r.Scope.Tenant), bindText(r.Scope.Caller),
		bindText(r.Operation), bindText(r.Key),
	}, s.updateArgs(r)...)
}

// bindTime says for PostgreSQL whose time it is; its session may think in another zone.
func (s *Store) bindTime(t time.Time) sqldriver.Value {
	if t.IsZero() {
		return nil
	}
	if s.dialect == dialect.PostgreSQL {
		return t.UTC().Format(timeLayout) + "Z"
	}
	return bindTime(t)
}
