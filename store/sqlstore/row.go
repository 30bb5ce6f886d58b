package sqlstore

import (
	"bytes"
	sqldriver "database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/driver"
)

// timeLayout is how times stand in a table: UTC, readable, in order as text.
const timeLayout = "2006-01-02 15:04:05.000000"

func bindTime(t time.Time) sqldriver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(timeLayout)
}

// bindText keeps any bytes exactly: text as text, so that a person can read it, the rest as a blob.
func bindText(s string) sqldriver.Value {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return []byte(s)
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

// insertArgs are those of insert.sql, which makes a Processing record.
func insertArgs(r *driver.Record) []sqldriver.Value {
	return []sqldriver.Value{
		bindText(r.Scope.Namespace), bindText(r.Scope.Tenant), bindText(r.Scope.Caller),
		bindText(r.Operation), bindText(r.Key), r.Fingerprint[:],
		int64(r.Attempt), int64(r.Died), int64(r.MaxAttempts), r.Fence, r.Owner[:],
		r.Lease.Microseconds(), bindTime(r.LeaseUntil), bindTime(r.DeadlineAt), r.OnLapse.String(),
		bindTime(r.RepeatableUntil), r.Retention.Microseconds(), bindBytes(r.Request), bindTime(r.CreatedAt), r.ID[:],
	}
}

// updateArgs are those of update.sql, which changes everything but the identity.
func updateArgs(r *driver.Record) []sqldriver.Value {
	return []sqldriver.Value{
		r.Status.String(), r.Failure.String(), r.Fingerprint[:],
		int64(r.Attempt), int64(r.Died), int64(r.MaxAttempts), r.Fence, r.Owner[:],
		r.Lease.Microseconds(), bindTime(r.LeaseUntil), bindTime(r.DeadlineAt), r.OnLapse.String(),
		bindTime(r.RepeatableUntil), r.Retention.Microseconds(),
		bindText(r.Result.Codec), bindBytes(r.Result.Meta), bindBytes(r.Result.Data), bindBool(r.Result.Tombstone),
		bindBytes(r.Request), bindText(r.Error), bindText(r.Resolution),
		bindTime(r.CreatedAt), bindTime(r.UpdatedAt), bindTime(r.CompletedAt), bindTime(r.ExpiresAt), r.ID[:],
	}
}

// finishArgs are those of finish.sql, which changes what an attempt's end changes.
func finishArgs(r *driver.Record, owner driver.Owner) []sqldriver.Value {
	return []sqldriver.Value{
		r.Status.String(), r.Failure.String(), r.Owner[:], bindText(r.Result.Codec), bindBytes(r.Result.Meta),
		bindBytes(r.Result.Data), bindBool(r.Result.Tombstone), bindText(r.Error),
		bindTime(r.UpdatedAt), bindTime(r.CompletedAt), bindTime(r.ExpiresAt), r.ID[:], owner[:], r.Fence,
	}
}

// Columns of the statements that read: those of fields.sql and two more, the identity, and a scan's place.
const (
	fieldColumns    = 9
	identityColumns = fieldColumns + 5
	scanColumns     = identityColumns + 2
)

// scanIdentity makes a record of the identity columns of a row.
func scanIdentity(id driver.ID, row []sqldriver.Value) *driver.Record {
	row = row[fieldColumns:]
	return &driver.Record{
		ID:        id,
		Scope:     driver.Scope{Namespace: text(row[0]), Tenant: text(row[1]), Caller: text(row[2])},
		Operation: text(row[3]), Key: text(row[4]),
	}
}

// scanFields copies a row's fields into a record that has its identity, and returns the store's clock. A row that nobody of
// ours writes is an error.
func scanFields(rec *driver.Record, row []sqldriver.Value) (now time.Time, err error) {
	h := head{fields: strings.Split(text(row[0]), "|")}
	now = time.UnixMilli(h.number()).UTC()
	var ok [3]bool
	rec.Status, ok[0] = driver.ParseStatus(h.next())
	rec.Failure, ok[1] = driver.ParseFailure(h.next())
	rec.OnLapse, ok[2] = driver.ParseOnLapse(h.next())
	rec.Attempt, rec.Died, rec.MaxAttempts = int(h.number()), int(h.number()), int(h.number())
	rec.Fence = h.number()
	rec.Lease = time.Duration(h.number()) * time.Microsecond
	rec.Retention = time.Duration(h.number()) * time.Microsecond
	rec.Result = driver.Result{Codec: text(row[3]), Meta: blob(row[4]), Data: blob(row[7]), Tombstone: h.number() != 0}
	if h.number() != 0 && rec.Result.Data == nil {
		rec.Result.Data = []byte{} // drivers differ in how they give an empty blob
	}
	for _, t := range [...]*time.Time{
		&rec.LeaseUntil, &rec.DeadlineAt, &rec.RepeatableUntil,
		&rec.CreatedAt, &rec.UpdatedAt, &rec.CompletedAt, &rec.ExpiresAt,
	} {
		*t = h.time()
	}
	rec.Error, rec.Resolution, rec.Request = text(row[5]), text(row[6]), blob(row[8])
	switch {
	case h.err != nil:
		return now, fmt.Errorf("%w: %s: a number or a time: %w", driver.ErrDamaged, rec.ID, h.err)
	case ok != [3]bool{true, true, true} || (rec.Status == driver.Fail) != (rec.Failure != 0):
		return now, fmt.Errorf("%w: %s: status, failure or on_lapse", driver.ErrDamaged, rec.ID)
	case !fill(rec.Fingerprint[:], row[1]) || !fill(rec.Owner[:], row[2]):
		return now, fmt.Errorf("%w: %s: fingerprint or owner has the wrong length", driver.ErrDamaged, rec.ID)
	}
	return now, nil
}

// head reads the first column, in which the short fields of a record come together. The first error stays.
type head struct {
	fields []string
	err    error
}

func (h *head) next() (field string) {
	if len(h.fields) == 0 {
		h.err = fmt.Errorf("too few fields")
		return ""
	}
	field, h.fields = h.fields[0], h.fields[1:]
	return field
}

func (h *head) number() int64 {
	n, err := strconv.ParseInt(h.next(), 10, 64)
	if err != nil && h.err == nil {
		h.err = err
	}
	return n
}

func (h *head) time() (t time.Time) {
	field := h.next()
	if field == "" {
		return t
	}
	t, ok := parseTime(field)
	if !ok && h.err == nil {
		h.err = fmt.Errorf("%q is no time", field)
	}
	return t
}

// parseTime is time.Parse for timeLayout alone, of which every replay needs five.
func parseTime(s string) (t time.Time, ok bool) {
	var n [7]int // year to second, microseconds
	part := 0
	if len(s) != len(timeLayout) {
		return t, false
	}
	for i := range len(s) {
		if c := s[i]; timeLayout[i] >= '0' && timeLayout[i] <= '9' {
			if c < '0' || c > '9' {
				return t, false
			}
			n[part] = n[part]*10 + int(c-'0')
		} else if part++; c != timeLayout[i] {
			return t, false
		}
	}
	t = time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, time.UTC)
	_, month, day := t.Date()
	hour, minute, second := t.Clock()
	return t, [5]int{int(month), day, hour, minute, second} == [5]int(n[1:6]) // time.Date takes the 32nd for the 1st
}

// text copies what a driver gives for text, whether it was kept as text or as a blob.
func text(v sqldriver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func blob(v sqldriver.Value) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case []byte:
		return bytes.Clone(v)
	}
	return nil
}

func fill(into []byte, v sqldriver.Value) bool {
	b, ok := v.([]byte)
	return ok && len(b) == len(into) && copy(into, b) == len(b)
}
