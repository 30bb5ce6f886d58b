package key_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/onceward/onceward/key"
)

func FuzzParseHeader(f *testing.F) {
	for _, v := range readVectors(f).Header {
		if len(v.Values) == 1 {
			f.Add(v.Values[0])
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		k, err := key.ParseHeader([]string{value})
		if (err == nil) == k.IsZero() {
			t.Fatalf("%q: key %q and error %v", value, k.Reveal(), err)
		}
		if err != nil {
			if strings.HasPrefix(errorName(err), "unexpected") {
				t.Fatal(err)
			}
			return
		}
		if again, err := key.Parse(k.Reveal()); err != nil || again != k {
			t.Fatalf("%q: accepted %q, which is outside of the grammar: %v", value, k.Reveal(), err)
		}
		comesBack(t, k)
	})
}

// FuzzHeaderValue finds the keys that ParseHeader does not make of a bare value.
func FuzzHeaderValue(f *testing.F) {
	for _, v := range readVectors(f).HeaderValue {
		f.Add(v.Key)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := key.Parse(text); err == nil {
			comesBack(t, k)
		}
	})
}

func TestHeaderValueOfRandomKeysComesBack(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := make([]byte, 1+random.IntN(12))
		for i := range b {
			if b[i] = byte(' ' + random.IntN(95)); random.IntN(3) == 0 {
				b[i] = `",\;( =`[random.IntN(7)]
			}
		}
		if k, err := key.Parse(string(b)); err == nil {
			comesBack(t, k)
		}
	}
}

func comesBack(t *testing.T, k key.Key) {
	t.Helper()
	again, err := key.ParseHeader([]string{k.HeaderValue()})
	if err != nil || again != k {
		t.Fatalf("key %q is sent as %s and read as %q, %v", k.Reveal(), k.HeaderValue(), again.Reveal(), err)
	}
}

func FuzzCompose(f *testing.F) {
	f.Add("a", "b", "a:b", "")
	f.Add("a%3A", "b", "a:", "b")
	f.Add("a b", "\xff", "a%20b", "%FF")
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		a, errA := compose(a1, a2)
		b, errB := compose(b1, b2)
		for _, k := range []key.Key{a, b} {
			if again, err := key.Parse(k.Reveal()); !k.IsZero() && (err != nil || again != k) {
				t.Fatalf("%q is outside of the grammar: %v", k.Reveal(), err)
			}
		}
		if errA == nil && errB == nil && (a == b) != (a1 == b1 && a2 == b2) {
			t.Fatalf("%q of %q %q and of %q %q", a.Reveal(), a1, a2, b1, b2)
		}
		if (key.Escape(a1) == key.Escape(b1)) != (a1 == b1) {
			t.Fatalf("%q and %q escape to %q", a1, b1, key.Escape(a1))
		}
	})
}

// compose leaves out an empty second part, so that keys of different numbers of parts meet.
func compose(first, second string) (key.Key, error) {
	if second == "" {
		return key.Compose(first)
	}
	return key.Compose(first, second)
}

func FuzzTimePrefix(f *testing.F) {
	for _, v := range readVectors(f).Time {
		f.Add(v.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prefix, ok := key.TimePrefix(text)
		if !ok && prefix != [6]byte{} {
			t.Fatalf("%q: no time, but %x", text, prefix)
		}
		if !ok {
			return
		}
		if upper, ok := key.TimePrefix(strings.ToUpper(text)); !ok || upper != prefix {
			t.Fatalf("%q: the case matters: %x, %x", text, prefix, upper)
		}
		if _, err := key.Parse(text); err != nil {
			t.Fatalf("%q has a time and is no key: %v", text, err)
		}
	})
}
