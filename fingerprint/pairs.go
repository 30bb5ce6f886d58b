package fingerprint

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// pair is where one decoded name and value stand in parser.spare.
type pair struct {
	start, nameEnd, end int
	bare                bool // without an equals sign
}

// pairs adds the pairs that decodePairs left. Their canonical form is the number of pairs, and for each, in the order of
// the names' bytes and as they came within one name: the name behind its length, 0 for a name without an equals sign or
// 1 and the value behind its length.
func (h *Hasher) pairs(kind byte, tag string, leaveOut []string) {
	s := h.part(kind, tag)
	s.pairs = slices.DeleteFunc(s.pairs, func(p pair) bool {
		name := s.spare[p.start:p.nameEnd]
		return slices.ContainsFunc(leaveOut, func(left string) bool { return left == string(name) })
	})
	byName := func(a, b pair) int {
		return bytes.Compare(s.spare[a.start:a.nameEnd], s.spare[b.start:b.nameEnd])
	}
	if !slices.IsSortedFunc(s.pairs, byName) {
		slices.SortStableFunc(s.pairs, byName)
	}
	s.buf = binary.AppendUvarint(s.buf, uint64(len(s.pairs)))
	for _, p := range s.pairs {
		s.buf = binary.AppendUvarint(s.buf, uint64(p.nameEnd-p.start))
		s.buf = append(s.buf, s.spare[p.start:p.nameEnd]...)
		if p.bare {
			s.buf = append(s.buf, 0)
			continue
		}
		s.buf = binary.AppendUvarint(append(s.buf, 1), uint64(p.end-p.nameEnd))
		s.buf = append(s.buf, s.spare[p.nameEnd:p.end]...)
	}
	s.spill()
}

// decodePairs decodes src into s.spare and s.pairs. It returns false for a percent sign without two hex digits, and for
// a semicolon: if the receiver takes it for an ampersand, a field left out would hide others.
func decodePairs[T string | []byte](s *scratch, src T) bool {
	s.spare, s.pairs = s.spare[:0], s.pairs[:0]
	p := pair{bare: true}
	for i := 0; i <= len(src); i++ {
		if i == len(src) || src[i] == '&' {
			if p.end = len(s.spare); p.bare {
				p.nameEnd = p.end
			}
			if p.end > p.start || !p.bare { // the empty pair says nothing
				s.pairs = append(s.pairs, p)
			}
			p = pair{start: p.end, bare: true}
			continue
		}
		c := src[i]
		switch {
		case c == ';':
			return false
		case c == '=' && p.bare:
			p.nameEnd, p.bare = len(s.spare), false
			continue
		case c == '+':
			c = ' '
		case c == '%':
			if i+2 >= len(src) {
				return false
			}
			high, ok1 := hexDigit(src[i+1])
			low, ok2 := hexDigit(src[i+2])
			if !ok1 || !ok2 {
				return false
			}
			c = high<<4 | low
			i += 2
		}
		s.spare = append(s.spare, c)
	}
	return true
}
