package fingerprint

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSum(t *testing.T) {
	t.Parallel()
	var none Sum
	if !none.IsZero() || none.Version() != 0 {
		t.Error("the zero value is a sum")
	}
	sum := New().Sum()
	if sum.IsZero() || sum.Version() != Version || len(sum.String()) != 66 || !strings.HasPrefix(sum.String(), "01") {
		t.Errorf("sum of nothing: %s", sum)
	}
}

// TestEveryPartCounts makes sums that are near each other, all of them different.
func TestEveryPartCounts(t *testing.T) {
	t.Parallel()
	seen := map[Sum]string{}
	differs := func(name string, add func(h *Hasher)) {
		t.Helper()
		h := New()
		add(h)
		sum := h.Sum()
		if other, taken := seen[sum]; taken {
			t.Errorf("%s equals %s", name, other)
		}
		seen[sum] = name
	}
	differs("nothing", func(h *Hasher) {})
	for _, tag := range []string{"", "a", "b", "ab"} {
		for _, v := range []string{"", "1", "a", "ab", "{}", `"a"`, "a=1"} {
			name := tag + "/" + v
			differs("text "+name, func(h *Hasher) { h.Text(tag, v) })
			differs("query "+name, func(h *Hasher) { h.Query(tag, v, nil) })
			if v == "" {
				continue
			}
			differs("bytes "+name, func(h *Hasher) { h.Bytes(tag, []byte(v)) })
			differs("json "+name, func(h *Hasher) { h.JSON(tag, []byte(v), nil) })
			differs("form "+name, func(h *Hasher) { h.Form(tag, []byte(v), nil) })
		}
	}
	differs("a, b", func(h *Hasher) { h.Text("x", "a"); h.Text("x", "b") })
	differs("b, a", func(h *Hasher) { h.Text("x", "b"); h.Text("x", "a") })
	differs("a twice", func(h *Hasher) { h.Text("x", "a"); h.Text("x", "a") })
	differs("a part in a text", func(h *Hasher) { h.Text("x", "at\x01x\x01b") })
}

func TestEmptyBodyEqualsOnlyAnEmptyOne(t *testing.T) {
	t.Parallel()
	var sums []Sum
	for _, body := range [][]byte{nil, {}} {
		for _, add := range []func(h *Hasher){
			func(h *Hasher) { h.Bytes("body", body) },
			func(h *Hasher) { h.JSON("body", body, nil) },
			func(h *Hasher) { h.Form("body", body, nil) },
		} {
			h := New()
			add(h)
			sums = append(sums, h.Sum())
		}
	}
	for _, sum := range sums {
		if sum != sums[0] {
			t.Error("empty bodies differ")
		}
	}
	for _, sum := range []Sum{sumJSON(" "), sumJSON("{}"), sumJSON("null"), sumJSON(`""`), sumJSON(`{"id":1}`, "/id"), sumForm("&"), sumForm("a=1", "a"), New().Sum()} {
		if sum == sums[0] {
			t.Error("something equals an empty body")
		}
	}
}

// TestLargePartsAreHashedAlike cuts one request at every place where memory is handed on.
func TestLargePartsAreHashedAlike(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 100, spillAt - 100, spillAt - 1, spillAt, spillAt + 1, 3 * spillAt, 2 * keepCap, 1 << 20} {
		body := bytes.Repeat([]byte("x"), n)
		for _, before := range []int{0, 1, spillAt - 40, spillAt} {
			h, small := New(), New()
			add := func(h *Hasher, body []byte) Sum {
				h.Text("t", strings.Repeat("y", before))
				h.Bytes("b", body)
				h.JSON("j", append(append([]byte(`{"a":"`), body...), `"}`...), nil)
				h.Form("f", body, nil)
				return h.Sum()
			}
			sum := add(h, body)
			if add(h, body) != sum || add(small, body) != sum {
				t.Errorf("%d behind %d: not the same again", n, before)
			}
			body[n-1] = 'z'
			if add(h, body) == sum {
				t.Errorf("%d behind %d: the last byte does not count", n, before)
			}
			body[n-1] = 'x'
		}
	}
}

func TestHashersDoNotShare(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			body := `{"b":` + strings.Repeat("1", i+1) + `,"a":0}`
			want := sumJSON(body)
			for range 500 {
				if sumJSON(body) != want {
					t.Error("sums mix")
				}
			}
		})
	}
	wg.Wait()
}

func TestOf(t *testing.T) {
	t.Parallel()
	type request struct {
		Order  string
		Amount int64
		Note   any
		seen   time.Time
	}
	of := func(v any) Sum {
		t.Helper()
		sum, err := Of(v)
		if err != nil || sum.IsZero() {
			t.Fatalf("%v: %v", v, err)
		}
		return sum
	}
	for _, c := range []struct {
		name string
		a, b any
		same bool
	}{
		{"nil", nil, nil, true},
		{"nil and no bytes", nil, []byte{}, false},
		{"nil and null", nil, json.RawMessage("null"), false},
		{"no bytes", []byte(nil), []byte{}, true},
		{"bytes", []byte(`{"a":1}`), []byte(`{"a": 1}`), false},
		{"raw JSON", json.RawMessage(`{"a":1}`), json.RawMessage(` {"a": 1.0} `), true},
		{"raw JSON that is none", json.RawMessage(`{"a":1`), json.RawMessage(`{"a": 1`), false},
		{"bytes and raw JSON", []byte(`{"a":1}`), json.RawMessage(`{"a":1}`), false},
		{"text", "a", "a", true},
		{"text of invalid UTF-8", "\xfe", "\xff", false},
		{"text and bytes", "a", []byte("a"), false},
		{"struct", request{"o", 1, nil, time.Time{}}, request{"o", 1, nil, time.Unix(1, 0)}, true},
		{"struct and map", request{Order: "o", Amount: 1}, map[string]any{"Note": nil, "Amount": 1, "Order": "o"}, true},
		{"struct and pointer", request{Order: "o"}, &request{Order: "o"}, true},
		{"amount", request{Amount: 1 << 53}, request{Amount: 1<<53 + 1}, false},
		{"large integers", uint64(math.MaxUint64), uint64(math.MaxUint64 - 1), false},
		{"integer and float", 2, 2.0, true},
		{"HTML", map[string]string{"a": "<&>"}, json.RawMessage(`{"a":"<&>"}`), true},
	} {
		if got := of(c.a) == of(c.b); got != c.same {
			t.Errorf("%s: same %v, want %v", c.name, got, c.same)
		}
	}
	for _, v := range []any{make(chan int), func() {}, math.NaN(), map[string]any{"x": make(chan int)}} {
		if sum, err := Of(v); err == nil || !sum.IsZero() || !strings.Contains(err.Error(), "does not marshal to JSON") {
			t.Errorf("%T: %v, %v", v, sum, err)
		}
	}
}

func TestAllocations(t *testing.T) { // not parallel: AllocsPerRun counts those of every goroutine
	body := []byte(benchmarkBody)
	leaveOut := []string{"/id", "/envelope/timestamp"}
	large := bytes.Repeat([]byte("x"), 100_000)
	form := []byte("b=2&a=1&c=3")
	for name, run := range map[string]func(){
		"no body": func() {
			h := New()
			h.Text("method", "POST")
			h.Text("path", "/v1/pay")
			h.Query("query", "", nil)
			h.JSON("body", nil, nil)
			sink = h.Sum()
		},
		"bytes":              func() { h := New(); h.Bytes("body", body); sink = h.Sum() },
		"large bytes":        func() { h := New(); h.Bytes("body", large); sink = h.Sum() },
		"JSON":               func() { h := New(); h.JSON("body", body, nil); sink = h.Sum() },
		"JSON with pointers": func() { h := New(); h.JSON("body", body, leaveOut); sink = h.Sum() },
		"form":               func() { h := New(); h.Form("body", form, leaveOut); sink = h.Sum() },
		"query":              func() { h := New(); h.Query("query", "b=2&a=1&c=3", leaveOut); sink = h.Sum() },
	} {
		// The race detector empties pools on purpose.
		if n := testing.AllocsPerRun(200, run); n >= 1 && !raceEnabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
