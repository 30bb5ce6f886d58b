package fingerprint

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// form returns the canonical form of body, and whether it has one.
func form(body string, leaveOut ...string) (string, bool) {
	s := &scratch{}
	ok := s.canonical([]byte(body), leaveOut)
	return string(s.buf), ok
}

func sumJSON(body string, leaveOut ...string) Sum {
	h := New()
	h.JSON("body", []byte(body), leaveOut)
	return h.Sum()
}

func TestCaseB036JSONMemberOrder(t *testing.T) {
	t.Parallel()
	first := sumJSON(`{"a":1,"b":[1,2]}`)
	for _, c := range []struct {
		name, body string
		same       bool
	}{
		{"member order and white space", `{"b":[1,2], "a":1}`, true},
		{"equivalent escapes", `{"\u0061":1,"b":[1,2]}`, true},
		{"1.0 is 1", `{"a":1.0,"b":[1e0,20e-1]}`, true},
		{"array order", `{"a":1,"b":[2,1]}`, false},
		{"another value", `{"a":"\u0041","b":[1,2]}`, false},
		{"number and text", `{"a":"1","b":[1,2]}`, false},
		{"a member more", `{"a":1,"b":[1,2],"c":null}`, false},
		{"another name", `{"A":1,"b":[1,2]}`, false},
		{"value moved", `{"a":[1,2],"b":1}`, false},
	} {
		if got := sumJSON(c.body) == first; got != c.same {
			t.Errorf("%s: same %v, want %v", c.name, got, c.same)
		}
	}

	twice := sumJSON(`{"a":1,"a":1}`)
	if twice != sumJSON(`{"a":1,"a":1}`) || twice == sumJSON(`{"a":1}`) || twice == sumJSON(`{"a":1, "a":1}`) {
		t.Error("a member twice is not compared as bytes")
	}
	h := New()
	h.Bytes("body", []byte(`{"a":1,"a":1}`))
	if h.Sum() == twice {
		t.Error("what is not JSON of one meaning looks like a body that is compared as bytes by choice")
	}
	raw := func(body string) Sum { h.Bytes("body", []byte(body)); return h.Sum() }
	if raw(`{"a":1,"b":[1,2]}`) == raw(`{"b":[1,2], "a":1}`) {
		t.Error("bytes do not matter in raw mode")
	}
}

func TestCaseB042PointersLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, leaveOut, a, b string
		same                 bool
	}{
		{"envelope id", "/id", `{"id":1,"p":5}`, `{"id":2,"p":5}`, true},
		{"another payload", "/id", `{"id":1,"p":5}`, `{"id":3,"p":6}`, false},
		{"absent", "/id", `{"id":1,"p":5}`, `{"p":5}`, true},
		{"of any kind", "/id", `{"id":{"x":[1]},"p":5}`, `{"id":"x","p":5}`, true},
		{"not further down", "/id", `{"id":1,"p":{"id":1}}`, `{"id":1,"p":{"id":2}}`, false},
		{"deep", "/envelope/timestamp", `{"envelope":{"timestamp":1,"to":"a"}}`, `{"envelope":{"to":"a","timestamp":2}}`, true},
		{"deep, beside", "/envelope/timestamp", `{"envelope":{"timestamp":1,"to":"a"}}`, `{"envelope":{"timestamp":1,"to":"b"}}`, false},
		{"same name elsewhere", "/envelope/timestamp", `{"timestamp":1}`, `{"timestamp":2}`, false},
		{"slash in a name", "/a~1b", `{"a/b":1}`, `{"a/b":2}`, true},
		{"tilde in a name", "/a~0b", `{"a~b":1}`, `{"a~b":2}`, true},
		{"~01 is ~1", "/~01", `{"~1":1}`, `{"~1":2}`, true},
		{"~01 is not /", "/~01", `{"/":1}`, `{"/":2}`, false},
		{"escaped in the body", "/id", `{"\u0069d":1}`, `{"id":2}`, true},
		{"element", "/items/1/at", `{"items":[{"at":1},{"at":1}]}`, `{"items":[{"at":1},{"at":2}]}`, true},
		{"another element", "/items/1/at", `{"items":[{"at":1},{"at":1}]}`, `{"items":[{"at":2},{"at":1}]}`, false},
		{"whole element", "/0", `[1,2]`, `[3,2]`, true},
		{"elements keep their places", "/0", `[1,2]`, `[2]`, false},
		{"no index with a leading zero", "/00", `[1]`, `[2]`, false},
		{"index as a name", "/0", `{"0":1}`, `{"0":2}`, true},
		{"not in the next branch", "/a/id", `{"a":{},"b":{"id":1}}`, `{"a":{},"b":{"id":2}}`, false},
		{"not in the next element", "/0/id", `[{},{"id":1}]`, `[{},{"id":2}]`, false},
		{"prefix of a name", "/i", `{"id":1}`, `{"id":2}`, false},
		{"longer than the path", "/id/x", `{"id":1}`, `{"id":2}`, false},
		{"no pointer", "id", `{"id":1}`, `{"id":2}`, false},
		{"the whole body", "", `{"id":1}`, `{"id":2}`, false},
		{"not JSON", "/id", `{"id":1,}`, `{"id":2,}`, false},
		{"twice, both left out", "/id", `{"id":1,"id":2}`, `{"id":3,"id":4}`, false},
		{"not JSON of one meaning inside", "/id", `{"id":{"a":1,"a":1}}`, `{"id":{"a":2,"a":2}}`, false},
	} {
		if got := sumJSON(c.a, c.leaveOut) == sumJSON(c.b, c.leaveOut); got != c.same {
			t.Errorf("%s: same %v, want %v", c.name, got, c.same)
		}
	}

	leave := []string{"/a", "/b/c", "/b/d/0", "/b"}
	if sumJSON(`{"a":1,"b":{"c":1,"d":[1,2]},"e":1}`, leave...) != sumJSON(`{"e":1}`, leave...) {
		t.Error("several pointers, one above another")
	}
}

func TestCheckPointer(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"/", "/id", "/a/b/0", "/~0~1", "//"} {
		if err := CheckPointer(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []string{"", "id", "#/id", "/~", "/~2", "/a~"} {
		if err := CheckPointer(p); err == nil {
			t.Errorf("%q passes", p)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	for _, brackets := range [][2]string{{"[", "]"}, {`{"a":`, "}"}, {`[{"a":`, "}]"}} {
		levels := strings.Count(brackets[0], "[") + strings.Count(brackets[0], "{")
		nest := func(n int) string {
			return strings.Repeat(brackets[0], n) + "1" + strings.Repeat(brackets[1], n)
		}
		if _, ok := form(nest(maxDepth / levels)); !ok {
			t.Errorf("%s: %d levels are refused", brackets[0], maxDepth)
		}
		if _, ok := form(nest(maxDepth/levels + 1)); ok {
			t.Errorf("%s: more than %d levels pass", brackets[0], maxDepth)
		}
	}
	if _, ok := form(strings.Repeat("[", 1<<20)); ok {
		t.Error("a million brackets pass")
	}
}

// TestLargeObjectsAreFolded keeps what is moved per level small, whatever stands further in.
func TestLargeObjectsAreFolded(t *testing.T) {
	t.Parallel()
	text := `"` + strings.Repeat("x", foldAbove) + `"`
	body := text
	for range 100 {
		body = `{"b":` + body + `,"a":` + text + `}`
	}
	s := &scratch{}
	if !s.canonical([]byte(body), nil) || len(s.buf) != 1+32 || s.buf[0] != 'h' {
		t.Fatalf("form of %d bytes", len(s.buf))
	}
	if cap(s.buf) > 8*foldAbove || cap(s.spare) > 8*foldAbove {
		t.Fatalf("%d bytes were open at once, %d moved at once", cap(s.buf), cap(s.spare))
	}
	if other, _ := form(strings.Replace(body, "xx", "xy", 1)); other == string(s.buf) {
		t.Fatal("a change inside is not seen")
	}
}

// TestShuffledJSON writes random values in two ways and compares, then changes one leaf.
func TestShuffledJSON(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 6))
	for range 3000 {
		v := randomValue(random, 4)
		a, b := write(random, v), write(random, v)
		formA, okA := form(a)
		formB, okB := form(b)
		if !okA || !okB || formA != formB {
			t.Fatalf("%v %s\n%v %s", okA, a, okB, b)
		}
		if sumJSON(a) != sumJSON(b) {
			t.Fatalf("sums differ:\n%s\n%s", a, b)
		}
		if c := write(random, changed(random, v)); sumJSON(c) == sumJSON(a) {
			t.Fatalf("one sum:\n%s\n%s", a, c)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, body := range []string{`{"b":[1,2.50,-0,1e9],"a":{"\u00e9":"\ud83d\ude00","":null}}`, `{"a":1,"\u0061":2}`, `[[[{}]]]`, `"\ud800"`, "\ufeff1", `[1e99999999999999999999]`, `{"a":"` + strings.Repeat("x", 1100) + `","A":0}`} {
		f.Add([]byte(body), "/a", uint64(1))
	}
	f.Fuzz(func(t *testing.T, body []byte, pointer string, seed uint64) {
		got, ok := form(string(body))
		v, want := readValue(body)
		if ok != want {
			t.Fatalf("canonical %v, JSON of one meaning %v: %q", ok, want, body)
		}
		_, okLess := form(string(body), pointer, "/a/b", "/0")
		if okLess != ok {
			t.Fatalf("leaving out %q makes it %v: %q", pointer, okLess, body)
		}
		sumJSON(string(body), pointer)
		if !ok || strings.Contains(strings.ToLower(string(body)), `\ud`) {
			return // encoding/json, which reads for us here, loses surrogates
		}
		text := write(rand.New(rand.NewPCG(seed, 0)), v)
		if again, ok := form(text); !ok || again != got {
			t.Fatalf("%q\n%q are two (%v)", body, text, ok)
		}
	})
}
