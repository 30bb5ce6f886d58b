package key

import (
	"errors"
	"strings"
)

var (
	errUnbalanced = errors.New("the quoted string has no end")
	errEscape     = errors.New(`in a quoted string a backslash stands only before " or \`)
	errList       = errors.New("a list of keys; send one")
	errGarbage    = errors.New("text behind the quoted string that is no parameter")
	errChar       = errors.New("a quoted string holds printable ASCII only")
)

// parseString reads a structured-field item of type string (RFC 9651, 3.3.3) that begins with a quote, and drops its
// parameters after checking their form.
func parseString(v string) (string, error) {
	var b strings.Builder
	i := 1
	for ; ; i++ {
		if i >= len(v) {
			return "", errUnbalanced
		}
		c := v[i]
		if c == '"' {
			break
		}
		if c == '\\' {
			i++
			if i >= len(v) {
				return "", errUnbalanced
			}
			if c = v[i]; c != '"' && c != '\\' {
				return "", errEscape
			}
		}
		if c < 0x20 || c > 0x7e {
			return "", errChar
		}
		b.WriteByte(c)
	}
	return b.String(), checkParameters(v[i+1:])
}

// checkParameters reads *( ";" *SP key [ "=" bare-item ] ).
func checkParameters(s string) error {
	for s = strings.TrimRight(s, " \t"); s != ""; {
		if s[0] == ',' || strings.TrimLeft(s, " \t")[0] == ',' {
			return errList
		}
		if s[0] != ';' {
			return errGarbage
		}
		s = strings.TrimLeft(s[1:], " ")
		n := 0
		for n < len(s) && (lower(s[n]) || s[n] == '*' || n > 0 && (digit(s[n]) || strings.IndexByte("_-.", s[n]) >= 0)) {
			n++
		}
		if n == 0 {
			return errGarbage
		}
		if s = s[n:]; s == "" || s[0] != '=' {
			continue
		}
		n, err := bareItem(s[1:])
		if err != nil {
			return err
		}
		s = s[1+n:]
	}
	return nil
}

// bareItem returns the length of the value at the beginning of s. It is dropped, so only its extent matters.
func bareItem(s string) (int, error) {
	if s == "" {
		return 0, errGarbage
	}
	if s[0] == '"' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return i + 1, nil
			}
		}
		return 0, errUnbalanced
	}
	n := 0
	for n < len(s) && s[n] > 0x20 && s[n] < 0x7f && s[n] != ';' && s[n] != ',' && s[n] != '"' {
		n++
	}
	if n == 0 {
		return 0, errGarbage
	}
	return n, nil
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }
func digit(c byte) bool { return '0' <= c && c <= '9' }
