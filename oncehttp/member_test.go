package oncehttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
)

func TestJSONText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, pointer, want string }{
		{`{"id":"a"}`, "/id", "a"},
		{" {\n\"x\" : [ 1 , { } , [ ] ] ,\t\"id\" : \"a\" } ", "/id", "a"},
		{`{"id":"\u0041\"\\\n"}`, "/id", "A\"\\\n"},
		{`{"\u0069d":"a"}`, "/id", "a"},
		{`{"a/b":{"m~n":"a"}}`, "/a~1b/m~0n", "a"},
		{`{"":"a"}`, "/", "a"},
		{`{"id":7}`, "/id", "7"}, {`{"id":-7}`, "/id", "-7"}, {`[0,"a"]`, "/1", "a"}, {`[[0],["x","a"]]`, "/1/1", "a"},
		{`{"e":[{"id":"a"},{"id":"b"}]}`, "/e/1/id", "b"},
		{`{"e":{"1":{"id":"a"}}}`, "/e/1/id", "a"},
		{`{"x":{"id":"no"},"id":"a","y":[{"id":"no"}]}`, "/id", "a"},
		{`{"x":"}]\\\"{[","id":"a"}`, "/id", "a"},
		{`{"x":{"y":1},"z":[true,null],"id":"a"}`, "/id", "a"},
		// No key.
		{``, "/id", "-"}, {`nonsense`, "/id", "-"}, {`{"id":"a"} {}`, "/id", "-"}, {`{"id":"a"`, "/id", "-"},
		{`{}`, "/id", "-"}, {`[]`, "/0", "-"}, {`["a"]`, "/00", "-"}, {`["a"]`, "/-1", "-"}, {`["a"]`, "/1", "-"}, {`"a"`, "/id", "-"}, {`7`, "/id", "-"},
		{`{"id":null}`, "/id", "-"}, {`{"id":1.5}`, "/id", "-"}, {`{"id":1e5}`, "/id", "-"}, {`{"id":[1]}`, "/id", "-"}, {`{"id":{}}`, "/id", "-"},
		{`{"id":{"id":"a"}}`, "/id", "-"}, {`{"x":1}`, "/x/id", "-"}, {`{"ID":"a"}`, "/id", "-"}, {`{"id":""}`, "/id", ""},
		// A name that stands twice on the way; beside the way it does not matter.
		{`{"id":"a","id":"a"}`, "/id", "!"}, {`{"id":"a","i\u0064":"b"}`, "/id", "!"}, {`{"id":null,"id":"a"}`, "/id", "!"},
		{`{"e":{"id":"a"},"e":{}}`, "/e/id", "!"}, {`{"e":{"id":"a","id":1}}`, "/e/id", "!"}, {`{"e":[{"id":1,"x":2,"id":3}]}`, "/e/0/id", "!"},
		{`{"x":1,"x":2,"id":"a","y":{"id":1,"id":2}}`, "/id", "a"},
	} {
		values, err := jsonText([]byte(c.body), c.pointer)
		got := "-"
		switch {
		case errors.Is(err, key.ErrInvalid):
			got = "!"
		case err != nil:
			t.Errorf("%s %s: %v", c.body, c.pointer, err)
		case len(values) > 0:
			got = values[0]
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.body, c.pointer, got, c.want)
		}
	}
	for _, long := range []string{
		`{"id":"` + strings.Repeat("x", 10*driver.MaxKey) + `"}`, `{"id":"` + strings.Repeat("\\u0041", driver.MaxKey+1) + `"}`, `{"id":` + strings.Repeat("1", driver.MaxKey+1) + `}`,
	} {
		values, err := jsonText([]byte(long), "/id")
		if err == nil {
			_, err = key.Parse(values[0])
		}
		if !errors.Is(err, key.ErrTooLong) {
			t.Errorf("%.20s: %v", long, err)
		}
	}
}

// FuzzJSONText compares the walk with what encoding/json finds.
func FuzzJSONText(f *testing.F) {
	for _, body := range []string{`{"a":{"b":["x",{"c":1}]}}`, `{"a":[]}`, `{"a":{"b":"\u0041"}} `, `[{"a":1}]`, `{"a":{},"b":{"a":"}"}}`} {
		f.Add([]byte(body), "/a/b/0")
		f.Add([]byte(body), "/a")
	}
	f.Fuzz(func(t *testing.T, body []byte, pointer string) {
		if !strings.HasPrefix(pointer, "/") || len(pointer) > 100 {
			return
		}
		got, err := jsonText(body, pointer)
		if errors.Is(err, key.ErrInvalid) {
			return // the other reader takes the last
		}
		want := unmarshalled(body, pointer)
		if len(got) != len(want) || len(got) == 1 && got[0] != want[0] && len(want[0]) <= driver.MaxKey {
			t.Errorf("%s %s: %q, want %q", body, pointer, got, want)
		}
	})
}

// unmarshalled is jsonText by means of a whole value.
func unmarshalled(body []byte, pointer string) []string {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || len(bytes.TrimSpace(body[dec.InputOffset():])) > 0 {
		return nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
		case []any:
			v = nil
			for i := range in {
				if fmt.Sprint(i) == token {
					v = in[i]
				}
			}
		default:
			return nil
		}
	}
	switch v := v.(type) {
	case string:
		return []string{v}
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return []string{v.String()}
		}
	}
	return nil
}

func TestFormText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{"id=a", "a"}, {"x=1&id=a%20b&y", "a b"}, {"i%64=a+b", "a b"}, {"id", ""}, {"id=a=b", "a=b"}, {"&&id=a&", "a"},
		{"", "-"}, {"x=1", "-"}, {"id=a&x=%zz", "-"}, {"id=a;b", "-"}, {"id=a&%", "-"}, {"id=a&id=a", "2"},
	} {
		values, got := formText([]byte(c.body), "id"), "-"
		switch len(values) {
		case 0:
		case 1:
			got = values[0]
		default:
			got = "2"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
}

// TestKeySourcesAreFrugal: bodies that would become many small values are not made into them. It is not parallel: the
// count is the process's.
func TestKeySourcesAreFrugal(t *testing.T) { //nolint:paralleltest // see above
	const size = 1 << 20
	for name, c := range map[string]struct {
		unit  string
		times uint64 // how often the body's size, garbage included
		find  func(body []byte) int
	}{
		"array": {"[],", 4, func(b []byte) int {
			v, _ := jsonText(append(append([]byte(`{"x":[`), b[:len(b)/3*3]...), `0],"id":"a"}`...), "/id")
			return len(v)
		}},
		"members": {`"":0,`, 4, func(b []byte) int {
			v, _ := jsonText(append(append([]byte(`{`), b[:len(b)/5*5]...), `"id":"a"}`...), "/id")
			return len(v)
		}},
		"names": {`"\u0069":0,`, 32, func(b []byte) int {
			v, _ := jsonText(append(append([]byte(`{`), b[:len(b)/11*11]...), `"id":"a"}`...), "/id")
			return len(v)
		}},
		"form": {"a&", 4, func(b []byte) int { return len(formText(append(b, "&id=a"...), "id")) }},
	} {
		body := bytes.Repeat([]byte(c.unit), size/len(c.unit))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		found := c.find(body)
		runtime.ReadMemStats(&after)
		if found != 1 {
			t.Errorf("%s: found %d", name, found)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > c.times*size {
			t.Errorf("%s: %d bytes for a body of %d", name, took, size)
		}
	}
}
