package fingerprint

import (
	"errors"
	"fmt"
	"strings"
)

// CheckPointer returns an error unless pointer is a JSON pointer (RFC 6901) to something inside a document: "/id",
// "/envelope/timestamp", "/items/0/at", with ~0 for ~ and ~1 for / in a name.
func CheckPointer(pointer string) error {
	if pointer == "" {
		return errors.New("fingerprint: an empty JSON pointer names the whole body: name what to leave out, such as /id")
	}
	if pointer[0] != '/' {
		return fmt.Errorf("fingerprint: JSON pointer %q must begin with a slash: /%s", pointer, pointer)
	}
	for i := 0; i < len(pointer); i++ {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return fmt.Errorf("fingerprint: JSON pointer %q has a ~ that is not ~0 (for ~) or ~1 (for /)", pointer)
		}
	}
	return nil
}

// cursor follows one pointer through the document.
type cursor struct {
	pointer string
	depth   int // how many of its tokens match the path to the open container
	pos     int // of the slash before the next token
}

func cursors(cs []cursor, pointers []string) []cursor {
	for _, p := range pointers {
		if p != "" && p[0] == '/' {
			cs = append(cs, cursor{pointer: p})
		}
	}
	return cs
}

// enter steps into the member or element of that name, in a container at that depth, and reports whether a pointer ends
// here.
func (p *parser) enter(name []byte, depth int) (left bool) {
	for i := range p.leave {
		c := &p.leave[i]
		if c.depth != depth || c.pos == len(c.pointer) {
			continue
		}
		token := c.pointer[c.pos+1:]
		if n := strings.IndexByte(token, '/'); n >= 0 {
			token = token[:n]
		}
		if tokenIs(token, name) {
			c.depth++
			c.pos += 1 + len(token)
			left = left || c.pos == len(c.pointer)
		}
	}
	return left
}

// exit takes back what enter at that depth did.
func (p *parser) exit(depth int) {
	for i := range p.leave {
		if c := &p.leave[i]; c.depth == depth+1 {
			c.depth--
			c.pos = strings.LastIndexByte(c.pointer[:c.pos], '/')
		}
	}
}

// tokenIs reports whether an escaped token stands for name.
func tokenIs(token string, name []byte) bool {
	for len(token) > 0 && len(name) > 0 {
		c, n := token[0], 1
		if c == '~' {
			if len(token) < 2 || token[1] != '0' && token[1] != '1' {
				return false
			}
			if n = 2; token[1] == '1' {
				c = '/'
			}
		}
		if c != name[0] {
			return false
		}
		token, name = token[n:], name[1:]
	}
	return len(token) == 0 && len(name) == 0
}
