package key_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/onceward/onceward/key"
)

func TestZeroIsNoKey(t *testing.T) {
	t.Parallel()
	var k key.Key
	if !k.IsZero() || k.Reveal() != "" || k.HeaderValue() != "" {
		t.Fatalf("zero key: %v %q %q", k.IsZero(), k.Reveal(), k.HeaderValue())
	}
	if must(t, "k").IsZero() {
		t.Fatal("a key is zero")
	}
}

func TestKeysAreComparable(t *testing.T) {
	t.Parallel()
	seen := map[key.Key]int{must(t, "a"): 1, must(t, "A"): 2}
	if seen[must(t, "a")] != 1 || seen[must(t, "A")] != 2 || len(seen) != 2 {
		t.Fatal("keys are not compared byte for byte")
	}
}

func TestErrorsDoNotEchoTheText(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for name, err := range map[string]error{
		"long":       second(key.Parse(strings.Repeat(secret, 99))),
		"control":    second(key.Parse(secret + "\n" + secret)),
		"blank":      second(key.Parse(secret + " ")),
		"quotes":     second(key.ParseHeader([]string{`"` + secret})),
		"list":       second(key.ParseHeader([]string{secret + "," + secret})),
		"lines":      second(key.ParseHeader([]string{secret, secret})),
		"behind":     second(key.ParseHeader([]string{`"a"` + secret})),
		"parameter":  second(key.ParseHeader([]string{`"a";` + secret + "=" + secret + "("})),
		"part":       second(key.Compose(secret, nil)),
		"parts long": second(key.Compose(secret, strings.Repeat(secret, 99))),
		"marshaler":  second(key.Compose(failing{secret})),
	} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCaseB038MissingIsNeverAKey(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{nil, {}, {""}, {" "}, {`""`}} {
		k, err := key.ParseHeader(values)
		if !errors.Is(err, key.ErrMissing) || !k.IsZero() {
			t.Errorf("%q: %v, %v", values, k, err)
		}
	}
	if k, err := key.Parse(""); !errors.Is(err, key.ErrMissing) || !k.IsZero() {
		t.Errorf("empty text: %v, %v", k, err)
	}
	if k, err := key.Derive(key.Key{}, "step"); !errors.Is(err, key.ErrMissing) || !k.IsZero() {
		t.Errorf("derived of nothing: %v, %v", k, err)
	}
	if k, err := key.Compose("order", ""); !errors.Is(err, key.ErrInvalid) || !k.IsZero() {
		t.Errorf("composed of an absent id: %v, %v", k, err)
	}
}

func TestCaseB040OddKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []string
		want  error
	}{
		{"empty", []string{""}, key.ErrMissing},
		{"blank", []string{"   \t"}, key.ErrMissing},
		{"two lines", []string{"a", "b"}, key.ErrInvalid},
		{"two identical lines", []string{"a", "a"}, key.ErrInvalid},
		{"NFC", []string{"\u00e9"}, key.ErrInvalid},
		{"NFD", []string{"e\u0301"}, key.ErrInvalid},
		{"inner blank", []string{"a b"}, nil},
		{"255 braces", []string{strings.Repeat("{", 255)}, nil},
		{"path", []string{"../../x"}, nil},
		{"DEL", []string{"k\x7f"}, key.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{"Idempotency-Key": c.lines}
			k, err := key.ParseHeader(header.Values("idempotency-key"))
			if !errors.Is(err, c.want) || k.IsZero() != (c.want != nil) {
				t.Fatalf("got %v, %v; want %v", k, err, c.want)
			}
			if c.want == nil && k.Reveal() != c.lines[0] {
				t.Fatalf("got %q", k.Reveal())
			}
			if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("the error has raw bytes: %q", err)
			}
		})
	}
}

func TestCaseB043QuotedAndBareAreOneKey(t *testing.T) {
	t.Parallel()
	bare, err1 := key.ParseHeader([]string{"abc"})
	quoted, err2 := key.ParseHeader([]string{`"abc"`})
	if err1 != nil || err2 != nil || bare != quoted {
		t.Errorf("bare %v %v, quoted %v %v", bare, err1, quoted, err2)
	}
	k, err := key.ParseHeader([]string{`"a\"b"`})
	if err != nil || k.Reveal() != `a"b` {
		t.Errorf("escaped: %q, %v", k.Reveal(), err)
	}
	if again, err := key.ParseHeader([]string{k.HeaderValue()}); err != nil || again != k {
		t.Errorf("does not come back: %q, %v", again.Reveal(), err)
	}
	if _, err := key.ParseHeader([]string{`"abc`}); !errors.Is(err, key.ErrInvalid) {
		t.Errorf("unbalanced: %v", err)
	}
}

func TestCaseB068OneLimit(t *testing.T) {
	t.Parallel()
	longest, over := strings.Repeat("k", key.MaxLen), strings.Repeat("k", key.MaxLen+1)
	for name, parse := range map[string]func(string) (key.Key, error){
		"Parse":   key.Parse,
		"bare":    func(s string) (key.Key, error) { return key.ParseHeader([]string{s}) },
		"quoted":  func(s string) (key.Key, error) { return key.ParseHeader([]string{`"` + s + `"`}) },
		"Compose": func(s string) (key.Key, error) { return key.Compose(s) },
	} {
		if k, err := parse(longest); err != nil || k.Reveal() != longest {
			t.Errorf("%s of %d bytes: %v", name, len(longest), err)
		}
		if k, err := parse(over); !errors.Is(err, key.ErrTooLong) || !errors.Is(err, key.ErrInvalid) || !k.IsZero() {
			t.Errorf("%s of %d bytes: %v", name, len(over), err)
		}
	}
}

func second(_ key.Key, err error) error { return err }
