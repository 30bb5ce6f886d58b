package fingerprint

import "unicode/utf8"

// text appends the characters of the string that begins at s.pos, and the end mark.
func (s *scratch) text() bool {
	src := s.src
	from := s.pos + 1
	for i := from; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			s.buf = append(append(s.buf, src[from:i]...), endOfText)
			s.pos = i + 1
			return true
		case c == '\\':
			s.buf = append(s.buf, src[from:i]...)
			n := s.escape(src[i+1:])
			if n == 0 {
				return false
			}
			i += 1 + n
			from = i
		case c < ' ':
			return false
		default:
			i++
		}
	}
	return false
}

// escape appends the character that an escape stands for, given what follows its backslash, and returns how many bytes
// it took; 0 if it is none.
func (s *scratch) escape(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	c := rest[0]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicode(rest)
	default:
		return 0
	}
	s.buf = append(s.buf, c)
	return 1
}

func (s *scratch) unicode(rest []byte) int {
	r, ok := hex4(rest)
	if !ok {
		return 0
	}
	const high, low, end = 0xD800, 0xDC00, 0xE000
	if r < high || r >= end {
		s.buf = utf8.AppendRune(s.buf, r)
		return 5
	}
	if r < low && len(rest) > 5 && rest[5] == '\\' {
		if r2, ok := hex4(rest[6:]); ok && r2 >= low && r2 < end {
			s.buf = utf8.AppendRune(s.buf, 0x10000+(r-high)<<10|(r2-low))
			return 11
		}
	}
	// A lone surrogate. AppendRune would make U+FFFD of it, and two different texts one.
	s.buf = append(s.buf, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	return 5
}

// hex4 reads u and four hex digits.
func hex4(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[1:5] {
		d, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
