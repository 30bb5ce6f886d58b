package fingerprint

import (
	"bytes"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxDepth = 512

// canonicalJSON returns a form that two JSON texts share exactly when they have the same value. It is not JSON: strings
// are raw and length-prefixed, numbers are sign, digits and exponent. ok is false when body has no one value.
func canonicalJSON(body []byte, leaveOut []string) (form []byte, ok bool) {
	if !utf8.Valid(body) {
		return nil, false
	}
	p := parser{in: body, skip: pointers(leaveOut)}
	p.space()
	if !p.value(0, p.skip) {
		return nil, false
	}
	p.space()
	if p.at != len(p.in) {
		return nil, false
	}
	return p.out, true
}

// pointer is what is left of the JSON pointers that lead through a place; end says that one ends here.
type pointer struct {
	end  bool
	next map[string]*pointer
}

func pointers(list []string) *pointer {
	var root *pointer
	for _, text := range list {
		if root == nil {
			root = &pointer{}
		}
		at := root
		if text != "" {
			for _, token := range strings.Split(strings.TrimPrefix(text, "/"), "/") {
				token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
				if at.next == nil {
					at.next = map[string]*pointer{}
				}
				if at.next[token] == nil {
					at.next[token] = &pointer{}
				}
				at = at.next[token]
			}
		}
		at.end = true
	}
	return root
}

func (p *pointer) step(token string) *pointer {
	if p == nil {
		return nil
	}
	return p.next[token]
}

type parser struct {
	in   []byte
	at   int
	out  []byte
	skip *pointer
}

func (p *parser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) take(c byte) bool {
	if p.at < len(p.in) && p.in[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) word(w string) bool {
	if bytes.HasPrefix(p.in[p.at:], []byte(w)) {
		p.at += len(w)
		p.out = append(p.out, w[0])
		return true
	}
	return false
}

func (p *parser) value(depth int, skip *pointer) bool {
	if depth > maxDepth || p.at >= len(p.in) {
		return false
	}
	if skip != nil && skip.end {
		before := len(p.out)
		ok := p.value(depth, nil) // it must still be JSON
		p.out = append(p.out[:before], '-')
		return ok
	}
	switch p.in[p.at] {
	case '{':
		return p.object(depth, skip)
	case '[':
		return p.array(depth, skip)
	case '"':
		p.out = append(p.out, '"')
		text, ok := p.text()
		p.appendText(text)
		return ok
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	}
	return p.number()
}

func (p *parser) appendText(text []byte) {
	p.out = strconv.AppendInt(p.out, int64(len(text)), 10)
	p.out = append(p.out, ':')
	p.out = append(p.out, text...)
}

type member struct {
	name string
	form []byte
}

func (p *parser) object(depth int, skip *pointer) bool {
	p.at++
	var members []member
	out := p.out
	defer func() { p.out = out }()
	p.space()
	if !p.take('}') {
		for {
			p.space()
			if p.at >= len(p.in) || p.in[p.at] != '"' {
				return false
			}
			p.out = nil
			name, ok := p.text()
			p.space()
			if !ok || !p.take(':') {
				return false
			}
			m := member{name: string(name)}
			p.space()
			inner := skip.step(m.name)
			if !p.value(depth+1, inner) {
				return false
			}
			if inner == nil || !inner.end {
				m.form = p.out
				members = append(members, m)
			}
			p.space()
			if p.take('}') {
				break
			}
			if !p.take(',') {
				return false
			}
		}
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	out = append(out, '{')
	for i, m := range members {
		if i > 0 && members[i-1].name == m.name {
			return false
		}
		out = strconv.AppendInt(out, int64(len(m.name)), 10)
		out = append(out, ':')
		out = append(out, m.name...)
		out = append(out, m.form...)
	}
	out = append(out, '}')
	return true
}

func (p *parser) array(depth int, skip *pointer) bool {
	p.at++
	p.out = append(p.out, '[')
	p.space()
	if p.take(']') {
		p.out = append(p.out, ']')
		return true
	}
	for i := 0; ; i++ {
		p.space()
		var inner *pointer
		if skip != nil {
			inner = skip.step(strconv.Itoa(i))
		}
		if !p.value(depth+1, inner) {
			return false
		}
		p.out = append(p.out, ',')
		p.space()
		if p.take(']') {
			p.out = append(p.out, ']')
			return true
		}
		if !p.take(',') {
			return false
		}
	}
}

// text reads a string and returns it unescaped. A lone surrogate keeps a form of its own (the three bytes that UTF-8
// would have for it), so that it equals nothing else.
func (p *parser) text() (text []byte, ok bool) {
	p.at++
	start := p.at
	for p.at < len(p.in) {
		switch c := p.in[p.at]; {
		case c == '"':
			p.at++
			if text == nil {
				return p.in[start : p.at-1], true
			}
			return append(text, p.in[start:p.at-1]...), true
		case c < 0x20:
			return nil, false
		case c == '\\':
			if text == nil {
				text = make([]byte, 0, p.at-start+16)
			}
			text = append(text, p.in[start:p.at]...)
			if text, ok = p.escape(text); !ok {
				return nil, false
			}
			start = p.at
		default:
			p.at++
		}
	}
	return nil, false
}

func (p *parser) escape(text []byte) ([]byte, bool) {
	if p.at+1 >= len(p.in) {
		return nil, false
	}
	c := p.in[p.at+1]
	p.at += 2
	switch c {
	case '"', '\\', '/':
		return append(text, c), true
	case 'b':
		return append(text, '\b'), true
	case 'f':
		return append(text, '\f'), true
	case 'n':
		return append(text, '\n'), true
	case 'r':
		return append(text, '\r'), true
	case 't':
		return append(text, '\t'), true
	case 'u':
		u, ok := p.hex4()
		if !ok {
			return nil, false
		}
		if 0xd800 <= u && u < 0xdc00 && p.at+1 < len(p.in) && p.in[p.at] == '\\' && p.in[p.at+1] == 'u' {
			back := p.at
			p.at += 2
			low, ok := p.hex4()
			if !ok {
				return nil, false
			}
			if 0xdc00 <= low && low < 0xe000 {
				return utf8.AppendRune(text, 0x10000+(u-0xd800)<<10+(low-0xdc00)), true
			}
			p.at = back
		}
		if 0xd800 <= u && u < 0xe000 {
			return append(text, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f), true
		}
		return utf8.AppendRune(text, u), true
	}
	return nil, false
}

func (p *parser) hex4() (rune, bool) {
	if p.at+4 > len(p.in) {
		return 0, false
	}
	u, err := strconv.ParseUint(string(p.in[p.at:p.at+4]), 16, 32)
	if err != nil {
		return 0, false
	}
	p.at += 4
	return rune(u), true
}

// number reads a number and appends its exact value: sign, digits without zeros at either end, and the exponent of the
// last digit as a decimal text of any length, so that 1e999999999 costs no more than its own length.
func (p *parser) number() bool {
	negative := p.take('-')
	whole := p.digits()
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	var fraction []byte
	if p.take('.') {
		if fraction = p.digits(); len(fraction) == 0 {
			return false
		}
	}
	var exponent []byte
	negativeExponent := false
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			negativeExponent = p.take('-')
		}
		if exponent = p.digits(); len(exponent) == 0 {
			return false
		}
	}
	all := append(slices.Clip(whole), fraction...)
	all = bytes.TrimLeft(all, "0")
	significant := bytes.TrimRight(all, "0")
	p.out = append(p.out, '#')
	if len(significant) == 0 {
		p.out = append(p.out, "0;"...)
		return true
	}
	shift := int64(len(all)-len(significant)) - int64(len(fraction))
	if negative {
		p.out = append(p.out, '-')
	}
	p.out = append(p.out, significant...)
	p.out = append(p.out, 'e')
	p.out = appendExponent(p.out, exponent, negativeExponent, shift)
	p.out = append(p.out, ';')
	return true
}

func (p *parser) digits() []byte {
	start := p.at
	for p.at < len(p.in) && '0' <= p.in[p.at] && p.in[p.at] <= '9' {
		p.at++
	}
	return p.in[start:p.at]
}

// appendExponent appends exponent + shift as a decimal text.
func appendExponent(out, exponent []byte, negative bool, shift int64) []byte {
	exponent = bytes.TrimLeft(exponent, "0")
	if len(exponent) <= 17 {
		var e int64
		for _, c := range exponent {
			e = e*10 + int64(c-'0')
		}
		if negative {
			e = -e
		}
		return strconv.AppendInt(out, e+shift, 10)
	}
	if len(exponent) > 4096 { // quadratic beyond reason: its text stands for itself
		if negative {
			out = append(out, '-')
		}
		return strconv.AppendInt(append(append(out, exponent...), '+'), shift, 10)
	}
	e, _ := new(big.Int).SetString(string(exponent), 10)
	if negative {
		e.Neg(e)
	}
	return e.Add(e, big.NewInt(shift)).Append(out, 10)
}
