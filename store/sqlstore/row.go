package sqlstore

import (
	"bytes"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onceward/onceward/driver"
)

// A row of a statement that reads begins with the store's clock and the short fields, in this order:
// clock, status, failure, on_lapse, attempt, died, max_attempts, fence, lease_us, retention_us, tombstone, whether there is a
// result, lease_until, deadline_at, repeatable_until, created_at, claimed_at, updated_at, completed_at, expires_at.
// On SQLite they come as one text: there a column costs more on its way out than all of them take to be put together.
const shortColumns = 20

// Behind them stand fingerprint, owner, result_codec, result_meta, error, resolution, steps, result and request, then namespace,
// tenant, caller, operation and idempotency_key where a statement reads them, then what it reads for itself.
const (
	longColumns     = 9
	identityColumns = 5
)

// long returns a row from its long fields on.
func long(row []sqldriver.Value) []sqldriver.Value {
	if s, ok := row[0].(string); ok && strings.IndexByte(s, '|') > 0 {
		return row[1:]
	}
	if b, ok := row[0].([]byte); ok && bytes.IndexByte(b, '|') > 0 {
		return row[1:]
	}
	return row[shortColumns:]
}

// scanIdentity makes a record of the identity columns of a row.
func scanIdentity(id driver.ID, row []sqldriver.Value) *driver.Record {
	row = long(row)[longColumns:]
	return &driver.Record{
		ID:        id,
		Scope:     driver.Scope{Namespace: text(row[0]), Tenant: text(row[1]), Caller: text(row[2])},
		Operation: text(row[3]), Key: text(row[4]),
	}
}

// scanFields copies a row's fields into a record that has its identity, and returns the store's clock. What nobody of ours
// writes is driver.ErrDamaged.
func scanFields(rec *driver.Record, row []sqldriver.Value) (now time.Time, err error) {
	rest := long(row)
	h := short{values: row[:len(row)-len(rest)]}
	if len(h.values) == 1 {
		h = short{texts: strings.Split(text(row[0]), "|")}
	}
	now = h.clock()
	var ok [3]bool
	rec.Status, ok[0] = driver.ParseStatus(h.text())
	rec.Failure, ok[1] = driver.ParseFailure(h.text())
	rec.OnLapse, ok[2] = driver.ParseOnLapse(h.text())
	rec.Attempt, rec.Died, rec.MaxAttempts = int(h.number()), int(h.number()), int(h.number())
	rec.Fence = h.number()
	rec.Lease = time.Duration(h.number()) * time.Microsecond
	rec.Retention = time.Duration(h.number()) * time.Microsecond
	rec.Result = driver.Result{Codec: text(rest[2]), Meta: blob(rest[3]), Data: blob(rest[7]), Tombstone: h.number() != 0}
	if h.number() != 0 && rec.Result.Data == nil {
		rec.Result.Data = []byte{} // drivers differ in how they give an empty blob
	}
	for _, t := range [...]*time.Time{
		&rec.LeaseUntil, &rec.DeadlineAt, &rec.RepeatableUntil,
		&rec.CreatedAt, &rec.ClaimedAt, &rec.UpdatedAt, &rec.CompletedAt, &rec.ExpiresAt,
	} {
		*t = h.time()
	}
	rec.Error, rec.Resolution, rec.Request = text(rest[4]), text(rest[5]), blob(rest[8])
	if rec.Steps, rec.StepsVersion, err = scanSteps(rest[6]); err != nil {
		return now, fmt.Errorf("%w: %s: steps: %w", driver.ErrDamaged, rec.ID, err)
	}
	switch {
	case h.err != nil:
		return now, fmt.Errorf("%w: %s: a number or a time: %w", driver.ErrDamaged, rec.ID, h.err)
	case ok != [3]bool{true, true, true} || (rec.Status == driver.Fail) != (rec.Failure != 0):
		return now, fmt.Errorf("%w: %s: status, failure or on_lapse", driver.ErrDamaged, rec.ID)
	case !fill(rec.Fingerprint[:], rest[0]) || !fill(rec.Owner[:], rest[1]):
		return now, fmt.Errorf("%w: %s: fingerprint or owner has the wrong length", driver.ErrDamaged, rec.ID)
	}
	return now, nil
}

// short reads the short fields one by one, as values or as texts. The first error stays.
type short struct {
	values []sqldriver.Value
	texts  []string
	err    error
}

func (h *short) next() (v sqldriver.Value) {
	switch {
	case len(h.texts) > 0:
		v, h.texts = h.texts[0], h.texts[1:]
	case len(h.values) > 0:
		v, h.values = h.values[0], h.values[1:]
	default:
		h.fail(errors.New("too few fields"))
	}
	return v
}

func (h *short) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

func (h *short) text() string {
	if len(h.texts) > 0 {
		t := h.texts[0]
		h.texts = h.texts[1:]
		return t
	}
	return text(h.next())
}

func (h *short) number() int64 {
	if len(h.texts) == 0 {
		switch v := h.next().(type) {
		case int64:
			return v
		case bool:
			if v {
				return 1
			}
			return 0
		case string, []byte:
			return h.parse(text(v))
		default:
			h.fail(fmt.Errorf("%T is no number", v))
			return 0
		}
	}
	return h.parse(h.text())
}

func (h *short) parse(field string) int64 {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		h.fail(err)
	}
	return n
}

// clock reads the store's clock, which SQLite gives in milliseconds.
func (h *short) clock() time.Time {
	if len(h.texts) > 0 {
		return time.UnixMilli(h.number()).UTC()
	}
	v := h.next()
	if ms, ok := v.(int64); ok {
		return time.UnixMilli(ms).UTC()
	}
	t := timeOf(v)
	if t.IsZero() {
		h.fail(errors.New("the clock is no time"))
	}
	return t
}

func (h *short) time() (t time.Time) {
	if len(h.texts) == 0 {
		v := h.next()
		if t = timeOf(v); t.IsZero() && v != nil {
			h.fail(fmt.Errorf("%v is no time", v))
		}
		return t
	}
	field := h.text()
	if field == "" {
		return t
	}
	t, ok := parseTime(field)
	if !ok {
		h.fail(fmt.Errorf("%q is no time", field))
	}
	return t
}

// timeOf returns a time that a driver gives as such or as text, zero for anything else.
func timeOf(v sqldriver.Value) (t time.Time) {
	switch v := v.(type) {
	case time.Time:
		return v.UTC()
	case string:
		t, _ = parseTime(v)
	case []byte:
		t, _ = parseTime(string(v))
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

// text copies what a driver gives for text, and undoes bindText.
func text(v sqldriver.Value) (s string) {
	switch v := v.(type) {
	case string:
		s = v
	case []byte:
		s = string(v)
	}
	if strings.HasPrefix(s, hexMark) {
		if b, err := hex.DecodeString(s[len(hexMark):]); err == nil {
			return string(b)
		}
	}
	return s
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
