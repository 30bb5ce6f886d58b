package oncehttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
)

var errTwice = fmt.Errorf("%w: a name on the way to it stands twice, and another reader may take the other; send it once", key.ErrInvalid)

// maxEscape is how many bytes of JSON stand for one byte of text at most: \u0041.
const maxEscape = 6

// jsonText returns the string or integer that a pointer (RFC 6901) leads to. The body is walked where it lies: values made
// of it would take many times its bytes, outside the budget.
func jsonText(body []byte, pointer string) ([]string, error) {
	if !json.Valid(body) {
		return nil, nil
	}
	w := walk{src: body}
	value, err := w.seek(pointer)
	if err != nil || len(value) == 0 {
		return nil, err
	}
	switch c := value[0]; {
	case c == '"' && len(value) > 2+maxEscape*driver.MaxKey:
		return nil, key.ErrTooLong
	case c == '"':
		text := ""
		_ = json.Unmarshal(value, &text) // it is valid
		return []string{text}, nil
	case (c == '-' || '0' <= c && c <= '9') && !bytes.ContainsAny(value, ".eE"):
		return []string{string(value[:min(len(value), driver.MaxKey+1)])}, nil
	}
	return nil, nil
}

// walk goes through a JSON text that is known to be valid.
type walk struct {
	src []byte
	pos int
}

// seek steps over the next value and returns the part of it that the pointer leads to, nil if there is none.
func (w *walk) seek(pointer string) (found []byte, err error) {
	w.space()
	from, open := w.pos, w.src[w.pos]
	if pointer == "" || open != '{' && open != '[' {
		w.skip()
		if pointer == "" {
			found = w.src[from:w.pos]
		}
		return found, nil
	}
	name, rest := pointer[1:], ""
	if n := strings.IndexByte(name, '/'); n >= 0 {
		name, rest = name[:n], name[n:]
	}
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	index, bad := strconv.Atoi(name)
	if bad != nil || strconv.Itoa(index) != name {
		index = -1
	}
	seen := false
	for i := 0; w.more(); i++ {
		here := i == index
		if open == '{' {
			here = w.nameIs(name)
		}
		switch {
		case !here:
			w.space()
			w.skip()
		case seen:
			return nil, errTwice
		default:
			seen = true
			if found, err = w.seek(rest); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// more steps over the bracket or comma before a member or element; false when it was the end instead.
func (w *walk) more() bool {
	w.space()
	if w.end() {
		return false
	}
	w.pos++
	w.space()
	return !w.end()
}

func (w *walk) end() bool {
	if c := w.src[w.pos]; c != '}' && c != ']' {
		return false
	}
	w.pos++
	return true
}

// nameIs steps over a member's name and its colon.
func (w *walk) nameIs(name string) bool {
	from := w.pos + 1
	w.text()
	raw := w.src[from : w.pos-1]
	w.space()
	w.pos++
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == name
	}
	text := ""
	return len(raw) <= maxEscape*len(name) && json.Unmarshal(w.src[from-1:from+len(raw)+1], &text) == nil && text == name
}

// skip steps over a value.
func (w *walk) skip() {
	depth := 0
	for w.pos < len(w.src) {
		switch w.src[w.pos] {
		case '"':
			w.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 { // of what a number or word stands in
				return
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return
			}
		}
		w.pos++
	}
}

// text steps over a string.
func (w *walk) text() {
	for w.pos++; w.src[w.pos] != '"'; w.pos++ {
		if w.src[w.pos] == '\\' {
			w.pos++
		}
	}
	w.pos++
}

func (w *walk) space() {
	for w.pos < len(w.src) && strings.IndexByte(" \t\n\r", w.src[w.pos]) >= 0 {
		w.pos++
	}
}

// formText returns the values of a name in a URL-encoded body, none if it is not one. Every pair is read by itself, for the
// same reason.
func formText(body []byte, name string) (values []string) {
	for pair := range bytes.SplitSeq(body, []byte("&")) {
		k, v, _ := bytes.Cut(pair, []byte("="))
		this, err := url.QueryUnescape(string(k))
		if err != nil || bytes.IndexByte(pair, ';') >= 0 {
			return nil
		}
		value, err := url.QueryUnescape(string(v))
		if err != nil {
			return nil
		}
		if this == name && len(pair) > 0 {
			if values = append(values, value); len(values) > 1 {
				return values
			}
		}
	}
	return values
}
