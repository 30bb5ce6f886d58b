package key_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/key"
)

type (
	orderID  string
	channel  int
	idText   [2]byte // like a UUID type: an array with MarshalText
	shown    struct{ s string }
	failing  struct{ secret string }
	wrapped  struct{ key.Key }
	stamp    struct{ time.Time }
	protoAt  struct{}
	price    float64
	rawBytes []byte
	nullID   struct{}
)

func (channel) String() string                { return "a name for people" }
func (i idText) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%02x", i[:]), nil }
func (s shown) String() string                { return s.s }
func (f failing) MarshalText() ([]byte, error) {
	return nil, errors.New("no text for " + f.secret)
}
func (nullID) MarshalText() ([]byte, error) { return []byte("null"), nil }
func (nullID) Value() (driver.Value, error) { return nil, nil }
func (protoAt) AsTime() time.Time           { return time.Time{} }
func (protoAt) String() string              { return "seconds:1" }
func (price) String() string                { return "1.0" }

func TestComposeTakes(t *testing.T) {
	t.Parallel()
	inner := must(t, "a:b")
	for _, c := range []struct {
		name string
		part any
		want string
	}{
		{"string", "o-1", "o-1"},
		{"named string", orderID("o-1"), "o-1"},
		{"int", -7, "-7"},
		{"int8", int8(-128), "-128"},
		{"int64", int64(1) << 62, "4611686018427387904"},
		{"uint64", ^uint64(0), "18446744073709551615"},
		{"named integer by value", channel(3), "3"},
		{"key, escaped", inner, "a%3Ab"},
		{"pointer to a key", &inner, "a%3Ab"},
		{"what embeds a key", wrapped{inner}, "a%3Ab"},
		{"text marshaler", idText{0xAB, 1}, "ab01"},
		{"stringer", shown{"s 1"}, "s%201"},
		{"pointer to a stringer", &shown{"s"}, "s"},
		{"big integer", new(big.Int).Lsh(big.NewInt(1), 70), "1180591620717411303424"},
		{"address", netip.MustParseAddr("::1"), "%3A%3A1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, err := key.Compose("p", c.part)
			if err != nil || k.Reveal() != "p:"+c.want {
				t.Fatalf("got %q, %v; want %q", k.Reveal(), err, "p:"+c.want)
			}
		})
	}
}

func TestComposeRefuses(t *testing.T) {
	t.Parallel()
	text := "x"
	for _, c := range []struct {
		name string
		part any
		says string
	}{
		{"nil", nil, "is nil"},
		{"null that has a text", nullID{}, "is nil"},
		{"nil pointer", (*shown)(nil), "is nil"},
		{"nil pointer to a marshaler", (*big.Int)(nil), "is nil"},
		{"nil pointer to a key", (*key.Key)(nil), "is nil"},
		{"nil bytes", rawBytes(nil), "is nil"},
		{"nil function", (func())(nil), "is nil"},
		{"empty text", "", "is empty"},
		{"no key", key.Key{}, "is empty"},
		{"empty stringer", shown{}, "is empty"},
		{"time", time.Unix(1, 0), "takes no time"},
		{"pointer to a time", new(time.Time), "takes no time"},
		{"what embeds a time", stamp{}, "takes no time"},
		{"protobuf's time", protoAt{}, "takes no time"},
		{"duration", time.Second, "takes no time"},
		{"float", 1.5, "floating-point"},
		{"named float with String", price(1), "floating-point"},
		{"complex", 1i, "floating-point"},
		{"boolean", true, "is a boolean"},
		{"failing marshaler", failing{"x"}, "MarshalText failed"},
		{"bytes", []byte("x"), "of a kind that has no one text"},
		{"pointer to a string", &text, "of a kind that has no one text"},
		{"struct", struct{}{}, "of a kind that has no one text"},
		{"map", map[string]int{}, "of a kind that has no one text"},
		{"error", errors.New("x"), "of a kind that has no one text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, err := key.Compose("p", c.part)
			if !errors.Is(err, key.ErrInvalid) || !k.IsZero() {
				t.Fatalf("got %q, %v", k.Reveal(), err)
			}
			if !strings.Contains(err.Error(), "part 2 of 2") || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%q does not say %q", err, c.says)
			}
		})
	}
}

func TestComposeTooLongNamesTheWayOut(t *testing.T) {
	t.Parallel()
	_, err := key.Compose(strings.Repeat("a", 200), strings.Repeat("b", 55))
	if !errors.Is(err, key.ErrTooLong) || !strings.Contains(err.Error(), "256 bytes") || !strings.Contains(err.Error(), "Derive") {
		t.Fatal(err)
	}
}

func TestDeriveTellsPathsApart(t *testing.T) {
	t.Parallel()
	seen := map[key.Key]string{}
	for _, parent := range []string{"k", "k1", "K", "1"} {
		for _, path := range [][]string{{"a"}, {"a", "a"}, {"aa"}, {"a", "b"}, {"b", "a"}, {"a:b"}, {"a", "a", "a"}, {"aaa"}} {
			k, err := key.Derive(must(t, parent), path...)
			if err != nil {
				t.Fatal(err)
			}
			this := fmt.Sprintf("%s %q", parent, path)
			if other, taken := seen[k]; taken {
				t.Errorf("%s and %s make one key", this, other)
			}
			seen[k] = this
			if again, err := key.Parse(k.Reveal()); err != nil || again != k || k.HeaderValue() != k.Reveal() {
				t.Errorf("%s: not a plain key: %v", this, err)
			}
		}
	}
}
