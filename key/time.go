package key

import "time"

// Time returns when a key was made, if its text tells: a UUIDv7 or a ULID, to the millisecond, in UTC. See TimePrefix
// for what counts as one. It is what the client said, not a proof.
func (k Key) Time() (time.Time, bool) {
	p, ok := TimePrefix(k.text)
	if !ok {
		return time.Time{}, false
	}
	var ms int64
	for _, b := range p {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC(), true
}

// TimePrefix returns the 48-bit time of the key's text. See the function of that name.
func (k Key) TimePrefix() ([6]byte, bool) { return TimePrefix(k.text) }

// TimePrefix returns the 48-bit time, milliseconds since 1970 big-endian, of a text that is a UUIDv7 or a ULID and
// nothing else. Any other text, of any bytes, is false.
//
//   - UUIDv7: 36 bytes, hyphens at 8, 13, 18 and 23, hex digits of either case elsewhere, version digit 7 (at 14),
//     variant digit 8, 9, a or b (at 19).
//   - ULID: 26 digits of Crockford's base 32 in either case (0-9 and A-Z without I, L, O, U; no aliases), the first at
//     most 7.
func TimePrefix(text string) ([6]byte, bool) {
	switch len(text) {
	case 36:
		return uuidTime(text)
	case 26:
		return ulidTime(text)
	}
	return [6]byte{}, false
}

func uuidTime(text string) (prefix [6]byte, ok bool) {
	if text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' || text[14] != '7' || hexDigit(text[19])>>2 != 2 {
		return [6]byte{}, false
	}
	var ms uint64
	for i := 0; i < len(text); i++ {
		d := hexDigit(text[i])
		switch {
		case d <= 15:
			if i < 13 {
				ms = ms<<4 | uint64(d)
			}
		case i != 8 && i != 13 && i != 18 && i != 23:
			return [6]byte{}, false
		}
	}
	return bigEndian(ms), true
}

func ulidTime(text string) (prefix [6]byte, ok bool) {
	var ms uint64
	for i := 0; i < len(text); i++ {
		d := crockfordDigit(text[i])
		if d > 31 || i == 0 && d > 7 {
			return [6]byte{}, false
		}
		if i < 10 {
			ms = ms<<5 | uint64(d)
		}
	}
	return bigEndian(ms), true
}

func bigEndian(ms uint64) (prefix [6]byte) {
	for i := range prefix {
		prefix[i] = byte(ms >> (40 - 8*i))
	}
	return prefix
}

const notADigit = 0xFF

func hexDigit(c byte) byte {
	if d := c - '0'; d <= 9 {
		return d
	}
	if d := c | 0x20 - 'a'; d <= 5 {
		return d + 10
	}
	return notADigit
}

func crockfordDigit(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	switch c |= 0x20; {
	case 'a' <= c && c <= 'h':
		return c - 'a' + 10
	case c == 'j' || c == 'k':
		return c - 'j' + 18
	case c == 'm' || c == 'n':
		return c - 'm' + 20
	case 'p' <= c && c <= 't':
		return c - 'p' + 22
	case 'v' <= c && c <= 'z':
		return c - 'v' + 27
	}
	return notADigit
}
