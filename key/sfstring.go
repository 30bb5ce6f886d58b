package key

import (
	"errors"
	"strings"
)

// parseStringItem reads s as a structured-field item (RFC 9651, section 4.2.3) whose value is a string, and returns
// the string. Its parameters must be well formed, and are dropped. s has no blanks around it.
func parseStringItem(s string) (string, error) {
	text, rest, err := readString(s)
	if err != nil {
		return "", err
	}
	if rest, err = skipParameters(rest); err != nil {
		return "", err
	}
	switch {
	case rest == "":
		return text, nil
	case strings.HasPrefix(strings.TrimLeft(rest, " \t"), ","):
		return "", errors.New("a list: send one key")
	}
	return "", errors.New("something stands behind the closing quote: escape quotes inside the key with a backslash")
}

// quote writes text, printable ASCII, as a structured-field string.
func quote(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 8)
	b.WriteByte('"')
	for i := 0; i < len(text); i++ {
		if text[i] == '"' || text[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	b.WriteByte('"')
	return b.String()
}

// readString reads a string at the beginning of s, which begins with a quote.
func readString(s string) (text, rest string, err error) {
	var b []byte
	from := 1 // of what is not yet in b; more than 1 behind an escape
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if from == 1 {
				return s[1:i], s[i+1:], nil
			}
			return string(append(b, s[from:i]...)), s[i+1:], nil
		case c == '\\':
			if i+1 == len(s) || s[i+1] != '"' && s[i+1] != '\\' {
				return "", "", errors.New(`a backslash stands before something else than " or \`)
			}
			b = append(b, s[from:i]...)
			i++
			from = i
		case c < ' ' || c > '~':
			return "", "", errors.New("a byte that is not printable ASCII")
		}
	}
	return "", "", errors.New("the closing quote is missing")
}

func skipParameters(s string) (rest string, err error) {
	for strings.HasPrefix(s, ";") {
		s = strings.TrimLeft(s[1:], " ")
		if s == "" || !isLower(s[0]) && s[0] != '*' {
			return "", errors.New("a parameter's name must begin with a-z or *")
		}
		s = skipWhile(s, func(c byte) bool { return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0 })
		if !strings.HasPrefix(s, "=") {
			continue // a parameter without a value is true
		}
		var ok bool
		if s, ok = skipBareItem(s[1:]); !ok {
			return "", errors.New("a parameter's value is malformed")
		}
	}
	return s, nil
}

// skipBareItem skips a parameter's value. What it means does not matter here, only where it ends.
func skipBareItem(s string) (rest string, ok bool) {
	if s == "" {
		return "", false
	}
	switch c := s[0]; {
	case c == '"':
		_, rest, err := readString(s)
		return rest, err == nil
	case isDigit(c) || c == '-':
		return skipNumber(s, true)
	case c == '@': // date
		return skipNumber(s[1:], false)
	case c == '?': // boolean
		return s[min(2, len(s)):], len(s) > 1 && (s[1] == '0' || s[1] == '1')
	case c == ':': // byte sequence
		rest = skipWhile(s[1:], func(c byte) bool { return isAlpha(c) || isDigit(c) || strings.IndexByte("+/=", c) >= 0 })
		return strings.CutPrefix(rest, ":")
	case c == '%': // display string
		return skipDisplayString(s[1:])
	case isAlpha(c) || c == '*': // token
		return skipWhile(s, func(c byte) bool { return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0 }), true
	}
	return "", false
}

// skipNumber skips an integer of at most 15 digits or a decimal of at most 12 and 3.
func skipNumber(s string, decimal bool) (rest string, ok bool) {
	s = strings.TrimPrefix(s, "-")
	rest = skipWhile(s, isDigit)
	whole := len(s) - len(rest)
	if !decimal || !strings.HasPrefix(rest, ".") {
		return rest, whole >= 1 && whole <= 15
	}
	end := skipWhile(rest[1:], isDigit)
	fraction := len(rest) - 1 - len(end)
	return end, whole >= 1 && whole <= 12 && fraction >= 1 && fraction <= 3
}

func skipDisplayString(s string) (rest string, ok bool) {
	if s, ok = strings.CutPrefix(s, `"`); !ok {
		return "", false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[i+1:], true
		case c < ' ' || c > '~':
			return "", false
		case c == '%':
			if i+2 >= len(s) || !isLowerHex(s[i+1]) || !isLowerHex(s[i+2]) {
				return "", false
			}
			i += 2
		}
	}
	return "", false
}

func skipWhile(s string, is func(byte) bool) string {
	i := 0
	for i < len(s) && is(s[i]) {
		i++
	}
	return s[i:]
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isLower(c byte) bool    { return 'a' <= c && c <= 'z' }
func isAlpha(c byte) bool    { return isLower(c | 0x20) }
func isLowerHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' }
