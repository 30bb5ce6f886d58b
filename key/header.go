package key

import (
	"errors"
	"fmt"
	"strings"
)

// ParseHeader reads the key from all lines of one HTTP header field, as http.Header.Values returns them.
//
// Two forms are one and the same key: the bare text, abc, and the structured-field string of RFC 9651, "abc", with
// \" and \\ for a quote and a backslash; parameters behind its closing quote (;v=1) are checked and dropped. Blanks
// and tabs around the value are not part of it. A bare value is taken as it stands, semicolons included, but may not
// hold a comma nor begin with a parenthesis: it could be a list, or two lines that a proxy folded into one. Such keys
// are sent quoted.
//
// Errors: ErrMissing for no line or a blank one, ErrInvalid for more than one line (identical or not), a list, broken
// quoting or whatever Parse refuses, ErrTooLong.
func ParseHeader(values []string) (Key, error) {
	if len(values) == 0 {
		return Key{}, fmt.Errorf("%w: the header is absent", ErrMissing)
	}
	if len(values) > 1 {
		return Key{}, fmt.Errorf("%w: the header came %d times: send one key in one line", ErrInvalid, len(values))
	}
	value := strings.Trim(values[0], " \t")
	if value == "" {
		return Key{}, fmt.Errorf("%w: the header is blank", ErrMissing)
	}
	if value[0] == '"' {
		text, err := parseStringItem(value)
		if err != nil {
			return Key{}, fmt.Errorf("%w: quoted header value: %w", ErrInvalid, err)
		}
		return Parse(text)
	}
	if !bareSafe(value) {
		return Key{}, fmt.Errorf("%w: %w", ErrInvalid, errBare)
	}
	return Parse(value)
}

var errBare = errors.New("a bare header value with a comma, or beginning with a parenthesis, may be a list: send one key, quoted")

// HeaderValue returns the form in which to send k: bare where that is safe, otherwise quoted. ParseHeader reads every
// key back from it. Empty for no key.
func (k Key) HeaderValue() string {
	if k.IsZero() || k.text[0] != '"' && bareSafe(k.text) {
		return k.text
	}
	return quote(k.text)
}

func bareSafe(value string) bool {
	return value[0] != '(' && strings.IndexByte(value, ',') < 0
}
