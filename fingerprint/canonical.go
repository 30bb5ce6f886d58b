package fingerprint

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The canonical form of a JSON value, self-delimiting:
//
//	null, true, false   n t f
//	string              s, its characters as UTF-8 (lone surrogates likewise, so-called WTF-8), 0xFF
//	number              d, [-] digits [e exponent], 0xFF; see number.go
//	array               [ elements ]; an element left out is x
//	object              { members in the order of their names' bytes }; a member is its name, 0xFF, and its value
//	large object        h and the SHA-256 of its form, when that is longer than 1,024 bytes
//
// 0xFF can end strings because UTF-8 never has it. Large objects are folded so that sorting a body that was built for
// it, objects in objects each in the wrong order, moves every byte a bounded number of times, not once per level.
const (
	endOfText = 0xFF
	maxDepth  = 512
	foldAbove = 1024
)

// parser is the memory for the parsing of one JSON text.
type parser struct {
	src     []byte
	pos     int
	members []member // of the objects that are open
	spare   []byte   // for putting members in order
	leave   []cursor
}

// member is where one member of an open object stands in scratch.buf.
type member struct {
	start, nameEnd, end int // end is nameEnd for a member left out
}

// canonical appends the canonical form of body to s.buf. When it returns false, body is not JSON of one meaning and
// s.buf has a useless rest at its end.
func (s *scratch) canonical(body []byte, leaveOut []string) bool {
	if !utf8.Valid(body) {
		return false
	}
	s.src, s.pos, s.members = body, 0, s.members[:0]
	s.leave = cursors(s.leave[:0], leaveOut)
	ok := s.value(0)
	if ok {
		s.space()
		ok = s.pos == len(s.src)
	}
	s.src = nil
	clear(s.leave)
	return ok
}

func (s *scratch) value(depth int) bool {
	s.space()
	if s.pos == len(s.src) {
		return false
	}
	switch c := s.src[s.pos]; c {
	case '{':
		return depth < maxDepth && s.object(depth)
	case '[':
		return depth < maxDepth && s.array(depth)
	case '"':
		s.buf = append(s.buf, 's')
		return s.text()
	case 'n':
		return s.word("null")
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	}
	return s.number()
}

func (s *scratch) object(depth int) bool {
	start, first := len(s.buf), len(s.members)
	s.buf = append(s.buf, '{')
	rewrite := false
	for more := s.open('}'); more; {
		s.space()
		m := member{start: len(s.buf)}
		if s.pos == len(s.src) || s.src[s.pos] != '"' || !s.text() {
			return false
		}
		m.nameEnd = len(s.buf)
		if s.space(); !s.eat(':') {
			return false
		}
		left := s.enter(s.buf[m.start:m.nameEnd-1], depth)
		if !s.value(depth + 1) {
			return false
		}
		s.exit(depth)
		if left {
			s.buf = s.buf[:m.nameEnd]
			rewrite = true
		}
		m.end = len(s.buf)
		if n := len(s.members); n > first && !rewrite {
			rewrite = bytes.Compare(s.name(s.members[n-1]), s.name(m)) >= 0
		}
		s.members = append(s.members, m)
		var ok bool
		if more, ok = s.next('}'); !ok {
			return false
		}
	}
	if rewrite && !s.sort(start+1, s.members[first:]) {
		return false
	}
	s.members = s.members[:first]
	s.buf = append(s.buf, '}')
	if len(s.buf)-start > foldAbove {
		d := sha256.Sum256(s.buf[start:])
		s.buf = append(append(s.buf[:start], 'h'), d[:]...)
	}
	return true
}

func (s *scratch) array(depth int) bool {
	s.buf = append(s.buf, '[')
	i := 0
	for more := s.open(']'); more; i++ {
		start, left := len(s.buf), false
		if len(s.leave) > 0 {
			var index [20]byte
			left = s.enter(strconv.AppendInt(index[:0], int64(i), 10), depth)
		}
		if !s.value(depth + 1) {
			return false
		}
		s.exit(depth)
		if left {
			s.buf = append(s.buf[:start], 'x')
		}
		var ok bool
		if more, ok = s.next(']'); !ok {
			return false
		}
	}
	s.buf = append(s.buf, ']')
	return true
}

// sort puts the members, which fill s.buf from start on, in order. It returns false if a name is there twice.
func (s *scratch) sort(start int, members []member) bool {
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(s.name(a), s.name(b)) })
	s.spare = append(s.spare[:0], s.buf[start:]...)
	s.buf = s.buf[:start]
	for i, m := range members {
		if i > 0 {
			p := members[i-1]
			if bytes.Equal(s.spare[p.start-start:p.nameEnd-start], s.spare[m.start-start:m.nameEnd-start]) {
				return false
			}
		}
		if m.end > m.nameEnd {
			s.buf = append(s.buf, s.spare[m.start-start:m.end-start]...)
		}
	}
	return true
}

// name returns a member's name without its end mark, which would sort behind what a longer name goes on with.
func (s *scratch) name(m member) []byte { return s.buf[m.start : m.nameEnd-1] }

// open steps over the bracket that opens a container and reports whether it holds anything.
func (p *parser) open(end byte) bool {
	p.pos++
	p.space()
	return !p.eat(end)
}

// next steps over what follows a member or element: a comma, or the container's end.
func (p *parser) next(end byte) (more, ok bool) {
	p.space()
	if p.eat(',') {
		return true, true
	}
	return false, p.eat(end)
}

func (p *parser) eat(c byte) bool {
	if p.pos < len(p.src) && p.src[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (s *scratch) word(w string) bool {
	if end := s.pos + len(w); end <= len(s.src) && string(s.src[s.pos:end]) == w {
		s.pos = end
		s.buf = append(s.buf, w[0])
		return true
	}
	return false
}
