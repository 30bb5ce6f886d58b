package key

import (
	"fmt"
	"strings"
)

// ParseHeader takes the values of one HTTP header field, as http.Header.Values returns them. The bare form abc and
// the structured-field string "abc" are the same key; parameters behind the string are dropped.
//
// No value, or a blank one, is ErrMissing. More than one line, even an identical one, is ErrInvalid, and so is a list.
// A bare key with a comma is refused too, because a proxy may have folded two lines into one: quote such a key.
func ParseHeader(values []string) (Key, error) {
	switch len(values) {
	case 0:
		return Key{}, ErrMissing
	case 1:
	default:
		return Key{}, fmt.Errorf("%w: the header stands there %d times; send it once", ErrInvalid, len(values))
	}
	v := strings.Trim(values[0], " \t")
	if v == "" {
		return Key{}, ErrMissing
	}
	if v[0] == '"' {
		text, err := parseString(v)
		if err != nil {
			return Key{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return Parse(text)
	}
	if strings.Contains(v, ",") {
		return Key{}, fmt.Errorf(`%w: a comma looks like two keys; send one, or quote it: "a,b"`, ErrInvalid)
	}
	return Parse(v)
}

// HeaderValue returns the key in a form that ParseHeader reads back: bare where that is unambiguous, else quoted.
func (k Key) HeaderValue() string {
	if k.IsZero() || k.text[0] != '"' && !strings.Contains(k.text, ",") {
		return k.text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(k.text) + `"`
}
