package key

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"
)

// newest makes the UUIDs of one process grow within a millisecond too.
var newest struct {
	sync.Mutex
	tick uint64 // milliseconds and 12 bits of a counter
}

// New returns a fresh key for a client: a UUIDv7 (RFC 9562), whose time lets a server see how old an intent is and keeps
// records in time order. Make it once per intent and keep it over retries. Safe for concurrent use.
func New() Key {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails, by its contract

	newest.Lock()
	tick := uint64(time.Now().UnixMilli()) << 12
	if tick <= newest.tick {
		tick = newest.tick + 1
	}
	newest.tick = tick
	newest.Unlock()

	for i := range 6 {
		u[i] = byte(tick >> (52 - 8*i))
	}
	u[6] = 0x70 | byte(tick>>8)&0x0f
	u[7] = byte(tick)
	u[8] = 0x80 | u[8]&0x3f

	var text [36]byte
	hex.Encode(text[0:8], u[0:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:36], u[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return Key{text: string(text[:])}
}

// Time returns the instant in a key that is a UUIDv7 or a ULID. See TimePrefix.
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

// TimePrefix returns the 48 bits of milliseconds that a UUIDv7 (36 characters in the usual form, version 7, variant 10)
// or a ULID (26 characters of Crockford's base32, the first at most 7) begins with; letters of either case. It is a
// pure function of the text.
func TimePrefix(text string) (prefix [6]byte, ok bool) {
	switch len(text) {
	case 36:
		return uuid7Time(text)
	case 26:
		return ulidTime(text)
	}
	return prefix, false
}

func uuid7Time(text string) (prefix [6]byte, ok bool) {
	for i := range len(text) {
		c := text[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return prefix, false
			}
		} else if hexDigit(c) > 15 {
			return prefix, false
		}
	}
	if text[14] != '7' || hexDigit(text[19])>>2 != 2 {
		return prefix, false
	}
	for i, at := range [6]int{0, 2, 4, 6, 9, 11} {
		prefix[i] = hexDigit(text[at])<<4 | hexDigit(text[at+1])
	}
	return prefix, true
}

func ulidTime(text string) (prefix [6]byte, ok bool) {
	var ms uint64
	for i := range len(text) {
		v := crockford(text[i])
		if v > 31 || i == 0 && v > 7 {
			return prefix, false
		}
		if i < 10 {
			ms = ms<<5 | uint64(v)
		}
	}
	for i := range prefix {
		prefix[i] = byte(ms >> (40 - 8*i))
	}
	return prefix, true
}

func hexDigit(c byte) byte {
	switch {
	case digit(c):
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return (c | 0x20) - 'a' + 10
	}
	return 255
}

func crockford(c byte) byte {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if lower(c) {
		c -= 'a' - 'A'
	}
	for i := range len(alphabet) {
		if alphabet[i] == c {
			return byte(i)
		}
	}
	return 255
}
