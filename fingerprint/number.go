package fingerprint

import (
	"slices"
	"strconv"
)

// number appends the canonical form of the number that begins at s.pos: its exact value as a whole number times a
// power of ten. The digits have no zero at either end; an exponent of 0 is not written; zero has no sign.
func (s *scratch) number() bool {
	negative := s.eat('-')
	whole := s.digits()
	if len(whole) == 0 || whole[0] == '0' && len(whole) > 1 {
		return false
	}
	var fraction []byte
	if s.eat('.') {
		if fraction = s.digits(); len(fraction) == 0 {
			return false
		}
	}
	var exponent []byte
	down := false // the exponent is negative
	if s.eat('e') || s.eat('E') {
		if !s.eat('+') {
			down = s.eat('-')
		}
		if exponent = s.digits(); len(exponent) == 0 {
			return false
		}
		exponent = trimLeft(exponent)
	}

	s.buf = append(s.buf, 'd')
	if negative {
		s.buf = append(s.buf, '-')
	}
	mark, shift := len(s.buf), -len(fraction)
	if whole[0] != '0' {
		s.buf = append(s.buf, whole...)
	} else {
		fraction = trimLeft(fraction)
	}
	s.buf = append(s.buf, fraction...)
	for len(s.buf) > mark && s.buf[len(s.buf)-1] == '0' {
		s.buf = s.buf[:len(s.buf)-1]
		shift++
	}
	if len(s.buf) == mark {
		if negative {
			s.buf = s.buf[:mark-1]
		}
		s.buf = append(s.buf, '0', endOfText)
		return true
	}
	s.buf = append(appendExponent(s.buf, down, exponent, int64(shift)), endOfText)
	return true
}

func (p *parser) digits() []byte {
	start := p.pos
	for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.src[start:p.pos]
}

func trimLeft(digits []byte) []byte {
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits
}

// appendExponent appends e and the sum of an exponent and a shift, nothing if that is 0. The exponent may have any
// number of digits, the first not 0; the shift is small, as it counts bytes of the text.
func appendExponent(b []byte, down bool, digits []byte, shift int64) []byte {
	const fits = 18 // digits in an int64, with room for the shift
	if len(digits) <= fits {
		var e int64
		for _, d := range digits {
			e = e*10 + int64(d-'0')
		}
		if down {
			e = -e
		}
		if e += shift; e == 0 {
			return b
		}
		return strconv.AppendInt(append(b, 'e'), e, 10)
	}

	// By hand, in time linear in the digits. The shift can't reach the sign of a number this large.
	b = append(b, 'e')
	if down {
		b = append(b, '-')
		shift = -shift
	}
	mark := len(b)
	b = append(b, digits...)
	for i := len(b) - 1; shift != 0 && i >= mark; i-- {
		sum := int64(b[i]-'0') + shift
		shift = sum / 10
		d := sum % 10
		if d < 0 {
			d += 10
			shift--
		}
		b[i] = '0' + byte(d)
	}
	switch {
	case shift > 0: // the carry out of 99…9
		b = slices.Insert(b, mark, '0'+byte(shift))
	case b[mark] == '0': // 10…0 less something
		b = slices.Delete(b, mark, mark+1)
	}
	return b
}
