package fingerprint

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "-0e-9": "0", "0E+99999999999999999999": "0",
		"1": "1", "1.0": "1", "1e0": "1", "10e-1": "1", "0.1E1": "1", "1e00": "1", "1e-0": "1",
		"-12.50": "-125e-1", "100": "1e2", "0.001": "1e-3", "120e3": "12e4",
		"9007199254740992": "9007199254740992", "9007199254740993": "9007199254740993",
		"1e999999999":                         "1e999999999",
		"1e999999999999999999":                "1e999999999999999999",
		"10e999999999999999999":               "1e1000000000000000000",
		"0.1e1000000000000000000":             "1e999999999999999999",
		"1.5e9999999999999999999":             "15e9999999999999999998",
		"100e9999999999999999999":             "1e10000000000000000001",
		"0.01e-99999999999999999999999999999": "1e-100000000000000000000000000001",
		"10e-1000000000000000000":             "1e-999999999999999999",
		"1e0000000000000000000000000007":      "1e7",
	} {
		got, ok := form(text)
		if !ok || got != "d"+want+"\xff" {
			t.Errorf("%s: got %q, %v; want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "+1", "01", "-01", "00", "1.", ".1", "-.1", "1e", "1e+", "1e-", "1E", "1.e1", "1e1.0", "1_0", "0x1", "Infinity", "NaN", "1a", "--1", "١"} {
		if got, ok := form(text); ok {
			t.Errorf("%s passes as %q", text, got)
		}
	}
}

// TestNumbersAgainstRat compares forms with exact arithmetic.
func TestNumbersAgainstRat(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 8))
	one := func() string {
		b := []string{"", "-"}[random.IntN(2)] + []string{"0", "1", "10", "12", "120", "9007199254740993"}[random.IntN(6)]
		if random.IntN(2) == 0 {
			b += "." + []string{"0", "00", "1", "10", "01", "2"}[random.IntN(6)]
		}
		if random.IntN(2) == 0 {
			b += fmt.Sprintf("e%+d", random.IntN(7)-3)
		}
		return b
	}
	equal := 0
	for range 50_000 {
		a, b := one(), one()
		formA, okA := form(a)
		formB, okB := form(b)
		ratA, _ := new(big.Rat).SetString(a)
		ratB, _ := new(big.Rat).SetString(b)
		want := ratA.Cmp(ratB) == 0
		if !okA || !okB || (formA == formB) != want {
			t.Fatalf("%s and %s: equal %v, forms %q %q", a, b, want, formA, formB)
		}
		if want && a != b {
			equal++
		}
	}
	if equal < 100 {
		t.Fatalf("only %d pairs were equal", equal)
	}
}

func FuzzNumber(f *testing.F) {
	for _, seed := range [][2]string{{"1", "1.0"}, {"-0", "0"}, {"10e5", "1e6"}, {"1e999999999999999999", "10e999999999999999998"}, {"0.1e1000000000000000000", "1e999999999999999999"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !isNumber(a) || !isNumber(b) {
			return
		}
		formA, okA := form(a)
		formB, okB := form(b)
		if !okA || !okB {
			t.Fatalf("%s %v, %s %v", a, okA, b, okB)
		}
		if (formA == formB) != (exact(a) == exact(b)) {
			t.Fatalf("%s is %s, form %q; %s is %s, form %q", a, exact(a), formA, b, exact(b), formB)
		}
	})
}

func isNumber(text string) bool {
	return json.Valid([]byte(text)) && strings.Trim(text, "+-.0123456789eE") == "" && strings.ContainsAny(text, "0123456789")
}

// exact is the value of a number as the shortest digits and an exponent, by big integers.
func exact(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, _ := new(big.Int).SetString(whole+fraction, 10)
	if strings.HasPrefix(whole, "-") && digits.Sign() > 0 {
		digits.Neg(digits) // -0.5
	}
	if digits.Sign() == 0 {
		return "0"
	}
	e := new(big.Int)
	if exponent != "" {
		e.SetString(exponent, 10)
	}
	e.Sub(e, big.NewInt(int64(len(fraction))))
	for ten, rest := big.NewInt(10), new(big.Int); ; {
		quotient, _ := new(big.Int).QuoRem(digits, ten, rest)
		if rest.Sign() != 0 {
			return fmt.Sprint(digits, "e", e)
		}
		digits = quotient
		e.Add(e, big.NewInt(1))
	}
}
