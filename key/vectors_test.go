package key_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/onceward/onceward/key"
)

// vectors is testdata/vectors.json.
type vectors struct {
	Parse  []struct{ Name, Text, Error string }
	Digest []struct{ Text, Digest string }
	Header []struct {
		Name       string
		Values     []string
		Key, Error string
	}
	HeaderValue []struct{ Key, Value string } `json:"header_value"`
	Escape      []struct{ Part, Escaped string }
	Compose     []struct {
		Parts      []string
		Key, Error string
	}
	Derive []struct {
		Parent     string
		Path       []string
		Key, Error string
	}
	Time []struct {
		Name, Text string
		Ms         *int64
	}
}

func readVectors(tb testing.TB) (v vectors) {
	tb.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// errorName is how the vectors name an error.
func errorName(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, key.ErrMissing) && !errors.Is(err, key.ErrInvalid):
		return "missing"
	case errors.Is(err, key.ErrTooLong) && errors.Is(err, key.ErrInvalid):
		return "too_long"
	case errors.Is(err, key.ErrInvalid):
		return "invalid"
	}
	return "unexpected: " + err.Error()
}

func must(tb testing.TB, text string) key.Key {
	tb.Helper()
	k, err := key.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func TestVectorsParse(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Parse {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			k, err := key.Parse(v.Text)
			check(t, k, err, v.Text, v.Error)
		})
	}
}

func TestVectorsDigest(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Digest {
		var k key.Key
		if v.Text != "" {
			k = must(t, v.Text)
		}
		if got := k.Digest(); got != v.Digest {
			t.Errorf("%q: got %s, want %s", v.Text, got, v.Digest)
		}
	}
}

func TestVectorsHeader(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Header {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			k, err := key.ParseHeader(v.Values)
			check(t, k, err, v.Key, v.Error)
		})
	}
}

func TestVectorsHeaderValue(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).HeaderValue {
		if got := must(t, v.Key).HeaderValue(); got != v.Value {
			t.Errorf("%q: got %s, want %s", v.Key, got, v.Value)
		}
	}
}

func TestVectorsEscape(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Escape {
		if got := key.Escape(v.Part); got != v.Escaped {
			t.Errorf("%q: got %s, want %s", v.Part, got, v.Escaped)
		}
	}
}

func TestVectorsCompose(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors(t).Compose {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			parts := make([]any, len(v.Parts))
			for i, p := range v.Parts {
				parts[i] = p
			}
			k, err := key.Compose(parts...)
			check(t, k, err, v.Key, v.Error)
		})
	}
}

func TestVectorsDerive(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors(t).Derive {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			var parent key.Key
			if v.Parent != "" {
				parent = must(t, v.Parent)
			}
			k, err := key.Derive(parent, v.Path...)
			check(t, k, err, v.Key, v.Error)
		})
	}
}

func TestVectorsTime(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Time {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			prefix, ok := key.TimePrefix(v.Text)
			if ok != (v.Ms != nil) {
				t.Fatalf("prefix %x, %v; want time %v", prefix, ok, v.Ms)
			}
			if v.Text == "" {
				return
			}
			at, ok := must(t, v.Text).Time()
			if ok != (v.Ms != nil) || ok && at.UnixMilli() != *v.Ms {
				t.Fatalf("time %v, %v; want %v", at, ok, v.Ms)
			}
			if method, _ := must(t, v.Text).TimePrefix(); method != prefix {
				t.Fatalf("method %x, function %x", method, prefix)
			}
			var ms int64
			for _, b := range prefix {
				ms = ms<<8 | int64(b)
			}
			if ok && ms != *v.Ms {
				t.Fatalf("prefix %x is %d, want %d", prefix, ms, *v.Ms)
			}
		})
	}
}

// check compares a key and error with what a vector wants.
func check(t *testing.T, k key.Key, err error, text, name string) {
	t.Helper()
	if got := errorName(err); got != name {
		t.Fatalf("error %q (%v), want %q", got, err, name)
	}
	if name != "" {
		text = ""
	}
	if k.Reveal() != text {
		t.Fatalf("got %q, want %q", k.Reveal(), text)
	}
}
