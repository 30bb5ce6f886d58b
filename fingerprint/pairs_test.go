package fingerprint

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func sumForm(body string, leaveOut ...string) Sum {
	h := New()
	h.Form("body", []byte(body), leaveOut)
	return h.Sum()
}

func sumQuery(query string, leaveOut ...string) Sum {
	h := New()
	h.Query("query", query, leaveOut)
	return h.Sum()
}

func TestPairs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"order of names", "a=1&b=2", "b=2&a=1", true},
		{"order within a name", "a=1&a=2", "a=2&a=1", false},
		{"others in between", "a=1&a=2&b=3", "a=1&b=3&a=2", true},
		{"escapes", "a%20b=%41", "a+b=A", true},
		{"case of escapes", "a=%c3%a9", "a=%C3%A9", true},
		{"empty pairs", "a=1&&b=2&", "a=1&b=2", true},
		{"another value", "a=1", "a=2", false},
		{"another name", "a=1", "b=1", false},
		{"moved equals sign", "ab=c", "a=bc", false},
		{"escaped equals sign", "a%3Db=c", "a=b=c", false},
		{"escaped ampersand", "a=1%26b=2", "a=1&b=2", false},
		{"no equals sign", "a", "a=", false},
		{"a pair twice", "a=1&a=1", "a=1", false},
		{"order of what can't be decoded", "a=%&b=2", "b=2&a=%", false},
		{"order with a semicolon", "a=1;&b=2", "b=2&a=1;", false},
	} {
		if got := sumForm(c.a) == sumForm(c.b); got != c.same {
			t.Errorf("form, %s: same %v, want %v", c.name, got, c.same)
		}
		if got := sumQuery(c.a) == sumQuery(c.b); got != c.same {
			t.Errorf("query, %s: same %v, want %v", c.name, got, c.same)
		}
	}
	if sumForm("sign=1&a=2&si%67n=3", "sign", "t") != sumForm("a=2", "sign", "t") || sumForm("sign=1&a=2", "sign") == sumForm("sign=1&a=3", "sign") {
		t.Error("form: leaving out")
	}
	if sumQuery("sign=1&a=2", "sign") != sumQuery("a=2") || sumQuery("sign=1&a=2") == sumQuery("a=2") {
		t.Error("query: leaving out")
	}
	if sumForm("sign=1;a=2", "sign") == sumForm("sign=1;a=3", "sign") {
		t.Error("a field left out hides what stands behind a semicolon")
	}
}

func FuzzPairs(f *testing.F) {
	for _, seed := range []string{"a=1&b=2&a=3", "a%20b=+&=x&&c", "a=%zz", "a;b", "%00=%ff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sum := sumQuery(text, "left")
		s := &scratch{}
		ok := decodePairs(s, text)
		values, err := url.ParseQuery(text)
		if ok != (err == nil) {
			t.Fatalf("%q: decoded %v, net/url says %v", text, ok, err)
		}
		if !ok {
			return
		}
		n := 0
		for _, v := range values {
			n += len(v)
		}
		// Pairs written anew, in the reverse order of names.
		names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return strings.Compare(b, a) })
		var parts []string
		for _, name := range names {
			for _, p := range s.pairs {
				if string(s.spare[p.start:p.nameEnd]) == name {
					part := url.QueryEscape(name)
					if !p.bare {
						part += "=" + url.QueryEscape(string(s.spare[p.nameEnd:p.end]))
					}
					parts = append(parts, part)
				}
			}
		}
		if len(parts) != n {
			t.Fatalf("%q: %d pairs, net/url has %d", text, len(parts), n)
		}
		if again := strings.Join(parts, "&"); sumQuery(again, "left") != sum {
			t.Fatalf("%q and %q are two", text, again)
		}
	})
}
