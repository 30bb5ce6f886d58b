package memstore_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/memstore"
)

// TestEveryFieldIsKept: a record comes back as it was put, whatever fields records get, each set alone and all together.
func TestEveryFieldIsKept(t *testing.T) {
	t.Parallel()
	s := memstore.New(nil)
	var all driver.Record
	n := 0
	setAll(t, reflect.ValueOf(&all).Elem(), &n)
	records := map[string]driver.Record{"all": all, "none": {}}
	for i := range reflect.TypeFor[driver.Record]().NumField() {
		var one driver.Record
		f := reflect.ValueOf(&one).Elem().Field(i)
		setAll(t, f, &n)
		records[reflect.TypeFor[driver.Record]().Field(i).Name] = one
	}
	for name, want := range records {
		s.Put(want)
		if got, err := s.Get(t.Context(), want.ID); err != nil || !reflect.DeepEqual(got.Record, want) {
			t.Errorf("%s: %v\n%+v came back as\n%+v", name, err, want, got.Record)
		}
	}
}

// setAll gives everything under v a value of its own.
func setAll(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Unix(int64(*n)*1e7, int64(*n)).UTC()
		return
	case *[]byte:
		*x = []byte{byte(*n)}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			setAll(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			setAll(t, v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			setAll(t, v.Index(i), n)
		}
	case reflect.String:
		v.SetString(string(rune('a' + *n)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(uint64(*n%200 + 1))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) << 32)
	default:
		t.Fatalf("no value for a %s: say here how one is made", v.Type())
	}
}

// TestEveryInstantIsKept: times come back to the nanosecond as far as a duration reaches from any now of this century;
// what lies beyond stays on its side of them.
func TestEveryInstantIsKept(t *testing.T) {
	t.Parallel()
	s := memstore.New(nil)
	for name, c := range map[string]struct {
		at    time.Time
		exact bool
	}{
		"none":               {time.Time{}, true},
		"epoch":              {time.Unix(0, 0), true},
		"before the epoch":   {time.Unix(-1, 1), true},
		"the turn":           {time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), true},
		"before the turn":    {time.Date(2099, 12, 31, 23, 59, 59, 1, time.UTC), true},
		"longest from 2026":  {time.Date(2026, 11, 30, 1, 2, 3, 4000, time.UTC).Add(math.MaxInt64), true},
		"longest from 2099":  {time.Date(2099, 12, 31, 0, 0, 0, 0, time.UTC).Add(math.MaxInt64), true},
		"long before":        {time.Date(1809, 1, 1, 0, 0, 0, 1, time.UTC), true},
		"beyond":             {time.Date(9999, 1, 1, 0, 0, 0, 7, time.UTC), false},
		"before what fits":   {time.Date(1, 1, 1, 0, 0, 0, 7, time.UTC), false},
		"end of what counts": {time.Unix(1<<62, 0), false},
	} {
		s.Put(driver.Record{ExpiresAt: c.at})
		snap, err := s.Get(t.Context(), driver.ID{})
		got := snap.Record.ExpiresAt
		if err != nil || c.exact && !got.Equal(c.at) || !c.exact && (got.After(time.Now()) != c.at.After(time.Now()) || got.IsZero()) {
			t.Errorf("%s: %v came back as %v, %v", name, c.at, got, err)
		}
	}
}
