package onceward_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncetest"
	"github.com/onceward/onceward/store/faultstore"
)

// cents marshals itself, by value.
type cents struct{ n int64 }

func (c cents) MarshalText() ([]byte, error) { return big.NewInt(c.n).MarshalText() }
func (c *cents) UnmarshalText(b []byte) error {
	var n big.Int
	err := n.UnmarshalText(b)
	c.n = n.Int64()
	return err
}

// hidden marshals itself by a method on its pointer.
type hidden struct{ text string }

func (h *hidden) MarshalJSON() ([]byte, error) { return json.Marshal(h.text) }
func (h *hidden) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &h.text) }

type base struct{ Name string }

type statement struct {
	base
	When    time.Time
	Price   string `json:"price"`
	N       int64
	U       uint64
	F       float64
	Any     any
	Raw     json.RawMessage
	Cents   cents
	Hidden  hidden
	Hiddens []hidden
	ByName  map[string]*hidden
	Big     big.Int
	PBig    *big.Int
	Took    time.Duration
	Addr    netip.Addr
	Count   map[int]string
	ByCents map[cents]bool
	Bytes   []byte
	Next    *statement
	A       int `json:"a"`
	UpperA  int `json:"A"`
	cache   int `onceward:"drop"`
}

func TestResultsComeBackExactly(t *testing.T) {
	t.Parallel()
	in := statement{
		base: base{"n"}, When: time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 8*3600)), Price: "0.10",
		N: 9007199254740993, U: math.MaxUint64, F: 0.1, Any: map[string]any{"n": int64(9007199254740993), "d": json.Number("1.10")},
		Raw: json.RawMessage(`{"b":1,"a":2}`), Cents: cents{-12345}, Hidden: hidden{"h"}, Hiddens: []hidden{{"x"}}, ByName: map[string]*hidden{"k": {"y"}},
		Big: *big.NewInt(7), PBig: new(big.Int).Lsh(big.NewInt(1), 200), Took: time.Hour, Addr: netip.MustParseAddr("::1"),
		Count: map[int]string{3: "c"}, ByCents: map[cents]bool{{5}: true}, Bytes: []byte{0, 255}, Next: &statement{A: 3}, A: 1, UpperA: 2, cache: 9,
	}
	d := newDesk(t, onceward.Operation{})
	out := oncetest.Twice(t, func() (statement, error) {
		return onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K")}, func(context.Context) (statement, error) {
			d.ledger.Add("K")
			return in, nil
		})
	})
	d.ledger.WantOnce(t, "K")
	if t.Failed() {
		return
	}
	if !out.When.Equal(in.When) {
		t.Errorf("time %v", out.When)
	}
	in.Any = map[string]any{"n": json.Number("9007199254740993"), "d": json.Number("1.10")}
	in.cache, out.When, in.When = 0, time.Time{}, time.Time{}
	out.Next.Raw = nil // JSON's null
	if !reflect.DeepEqual(in, out) {
		t.Errorf("\nin  %+v\nout %+v", in, out)
	}
}

type (
	unexported struct {
		ID   string
		note string
	}
	dashed struct {
		ID string `json:"-"`
	}
	shadowed struct {
		base
		Name string
	}
	deep struct {
		Items []struct{ Do func() }
	}
	loop struct {
		*loop //nolint:unused // JSON sees it
		ID    string
	}
	Ring struct {
		*Ring
		ID string
	}
	oneWay     struct{ ID string }
	oneWayText int
	twoClocks  struct {
		time.Time
		big.Int
	}
	embedsPointer struct{ *base }
)

func (oneWay) MarshalJSON() ([]byte, error)     { return []byte(`"x"`), nil }
func (oneWayText) MarshalText() ([]byte, error) { return []byte("x"), nil }

// oneKey and readKey are keys of a map that go one way only.
type (
	oneKey  int
	readKey string
)

func (oneKey) MarshalText() ([]byte, error) { return []byte("one"), nil }
func (*readKey) UnmarshalText([]byte) error { return nil }

// TestLossyTypesAreNamed: the first place where something would be lost is in the error.
func TestLossyTypesAreNamed(t *testing.T) {
	t.Parallel()
	_ = unexported{note: ""}
	number := reflect.TypeFor[int]()
	twins := reflect.StructOf([]reflect.StructField{{Name: "A", Type: number, Tag: `json:"x"`}, {Name: "B", Type: number, Tag: `json:"x"`}})
	for place, typ := range map[string]reflect.Type{
		"unexported.note":       reflect.TypeFor[unexported](),
		"dashed[].ID":           reflect.TypeFor[[]dashed](),
		"shadowed.Name":         reflect.TypeFor[shadowed](),
		"same JSON name":        twins,
		"deep.Items[].Do":       reflect.TypeFor[deep](),
		"loop.loop":             reflect.TypeFor[loop](),
		"Ring.Ring":             reflect.TypeFor[Ring](),
		"oneWay":                reflect.TypeFor[oneWay](),
		"no UnmarshalText":      reflect.TypeFor[oneWayText](),
		"map of pointers":       reflect.TypeFor[map[string]hidden](),
		"twoClocks.Time.wall":   reflect.TypeFor[twoClocks](),
		"embedsPointer.base":    reflect.TypeFor[embedsPointer](),
		"chan":                  reflect.TypeFor[chan int](),
		"complex128":            reflect.TypeFor[map[string]complex128](),
		"interface error":       reflect.TypeFor[struct{ Err error }](),
		"onceward_test.oneKey":  reflect.TypeFor[map[oneKey]int](),
		"onceward_test.readKey": reflect.TypeFor[map[readKey]int](),
		"keys of type float64":  reflect.TypeFor[map[float64]int](),
		"keys of type struct":   reflect.TypeFor[map[struct{ A int }]int](),
		"which JSON can't hold": reflect.TypeFor[[2]func()](),
		"time.Location":         reflect.TypeFor[struct{ L *time.Location }](),
	} {
		if err := (onceward.JSON{}).Check(typ); err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%v: %v, want %q named", typ, err, place)
		}
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[any](), reflect.TypeFor[*statement](), reflect.TypeFor[struct{}](), reflect.TypeFor[map[string][]any](),
		reflect.TypeFor[struct {
			A base
			base
		}](), reflect.TypeFor[[]*hidden](), reflect.TypeFor[json.Number](),
	} {
		if err := (onceward.JSON{}).Check(typ); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
	}
}

// TestLossyTypesRunNothing: they are refused on the first day, before the work.
func TestLossyTypesRunNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	for range 2 {
		_, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K")}, func(context.Context) (unexported, error) {
			d.ledger.Add("K")
			return unexported{}, nil
		})
		if err == nil || !strings.Contains(err.Error(), "unexported.note") || !strings.Contains(err.Error(), `"pay"`) {
			t.Errorf("%v", err)
		}
	}
	if n, c := d.ledger.Count("K"), d.store.Count(faultstore.Claim); n != 0 || c != 0 {
		t.Errorf("%d runs, %d claims", n, c)
	}
}

// stubborn does not marshal, or does not come back.
type stubborn struct{ how string }

func (s stubborn) MarshalJSON() ([]byte, error) {
	switch s.how {
	case "panics":
		panic("broken")
	case "fails":
		return nil, errors.New("no")
	}
	return []byte(`"x"`), nil
}
func (s *stubborn) UnmarshalJSON([]byte) error { return errors.New("can't be read") }

// TestResultThatCannotBeKept: the work is done, so it never runs again, and its first caller has the value.
func TestResultThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		again error
	}{
		"a function":      {func() {}, onceward.ErrResultNotKept},
		"not a number":    {math.NaN(), onceward.ErrResultNotKept},
		"fails to encode": {stubborn{"fails"}, onceward.ErrResultNotKept},
		"panics":          {stubborn{"panics"}, onceward.ErrResultNotKept},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, onceward.Operation{Repeatable: true})
			do := func() (any, onceward.Info, error) {
				var info onceward.Info
				v, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K"), Info: &info}, func(context.Context) (any, error) {
					d.ledger.Add("K")
					return c.value, nil
				})
				return v, info, err
			}
			if v, info, err := do(); v == nil || !errors.Is(err, onceward.ErrResultNotKept) || !info.Recorded || strings.Contains(err.Error(), "read back") {
				t.Errorf("the first: %v %+v %v", v, info, err)
			}
			for range 2 {
				if v, info, err := do(); v != nil || !errors.Is(err, c.again) || info.Kind != onceward.KindReplay {
					t.Errorf("a duplicate: %v %+v %v", v, info, err)
				}
			}
			d.ledger.WantOnce(t, "K")
		})
	}
}

// TestResultThatCannotBeRead shows on the first day, with the value.
func TestResultThatCannotBeRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	do := func() (stubborn, error) {
		return onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K")}, func(context.Context) (stubborn, error) {
			d.ledger.Add("K")
			return stubborn{"is written"}, nil
		})
	}
	if v, err := do(); v.how != "is written" || !errors.Is(err, onceward.ErrResultNotKept) {
		t.Errorf("the first: %+v %v", v, err)
	}
	if v, err := do(); v.how != "" || !errors.Is(err, onceward.ErrCorruptRecord) {
		t.Errorf("a duplicate: %+v %v", v, err)
	}
	d.ledger.WantOnce(t, "K")
}

// TestPanicOfADecoder is an error, on the first run and on every replay.
func TestPanicOfADecoder(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	for i, want := range []error{onceward.ErrResultNotKept, onceward.ErrCorruptRecord, onceward.ErrCorruptRecord} {
		_, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K")}, func(context.Context) (explosive, error) { return explosive{}, nil })
		if !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
	}
}

type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (*explosive) UnmarshalJSON([]byte) error  { panic("boom") }

// TestInfoIsFresh: a call that is refused early does not leave an older call's Info.
func TestInfoIsFresh(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	info := onceward.Info{Kind: onceward.KindRun, Attempt: 9, Recorded: true}
	_, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("K"), Info: &info}, func(context.Context) (chan int, error) { return nil, nil })
	if err == nil || info != (onceward.Info{}) {
		t.Errorf("%v %+v", err, info)
	}
}

func TestRawCodec(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{Codec: onceward.Raw{}})
	for name, in := range map[string][]byte{"some": {0, 255, 10}, "empty": {}, "nil": nil} {
		out := oncetest.Twice(t, func() ([]byte, error) {
			return onceward.Do(t.Context(), d.op, onceward.Call{Key: k("bytes " + name)}, func(context.Context) ([]byte, error) {
				d.ledger.Add(name)
				return in, nil
			})
		})
		if string(out) != string(in) || out == nil {
			t.Errorf("%s: %v", name, out)
		}
		d.ledger.WantOnce(t, name)
	}
	if v := oncetest.Twice(t, func() (string, error) {
		v, _, err := d.pay(t.Context(), "text", paid)
		return v, err
	}); v != "paid" {
		t.Errorf("%q", v)
	}
	if _, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k("number")}, func(context.Context) (int, error) { d.ledger.Add("number"); return 1, nil }); err == nil || d.ledger.Count("number") != 0 {
		t.Errorf("a number: %v, ran %d times", err, d.ledger.Count("number"))
	}
	if _, err := (onceward.Raw{}).Encode(1); err == nil {
		t.Error("a number was encoded")
	}
	if err := (onceward.Raw{}).Decode(nil, new(int)); err == nil {
		t.Error("a number was decoded")
	}
	if err := (onceward.JSON{}).Decode([]byte("1 2"), new(int)); err == nil {
		t.Error("two values were decoded as one")
	}
}

// TestAnotherCodecIsNotGuessed: what one codec wrote is not read by another.
func TestAnotherCodecIsNotGuessed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	if _, _, err := d.pay(t.Context(), "K", paid); err != nil {
		t.Fatal(err)
	}
	changed := newDeskOn(t, d.mem, onceward.Operation{Codec: onceward.Raw{}})
	v, _, err := changed.pay(t.Context(), "K", paid)
	if v != "" || !errors.Is(err, onceward.ErrCorruptRecord) || !strings.Contains(err.Error(), `"json"`) || changed.ledger.Count("K") != 0 {
		t.Errorf("%q %v", v, err)
	}
}
