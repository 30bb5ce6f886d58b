package key

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Derive returns the key for a call further down: the same for the same parent and path on every attempt and every
// machine, different for any other, and it does not give the parent away.
//
// The text is "ow1-" and, in lower-case hex, the first 20 bytes of the SHA-256 of these strings, each behind its
// length as 4 bytes big-endian: "onceward key derive 1", the parent's text, the path's elements. Elements are any
// bytes; at least one is needed, and none may be empty.
//
// Errors: ErrMissing for no parent, ErrInvalid for an empty path or element.
func Derive(parent Key, path ...string) (Key, error) {
	if parent.IsZero() {
		return Key{}, fmt.Errorf("%w: Derive needs a parent key", ErrMissing)
	}
	if len(path) == 0 {
		return Key{}, fmt.Errorf("%w: Derive needs a path that names the call", ErrInvalid)
	}
	b := make([]byte, 0, 384)
	b = appendPrefixed(b, "onceward key derive 1")
	b = appendPrefixed(b, parent.text)
	for i, element := range path {
		if element == "" {
			return Key{}, fmt.Errorf("%w: element %d of %d of the path is empty: name the call", ErrInvalid, i+1, len(path))
		}
		b = appendPrefixed(b, element)
	}
	sum := sha256.Sum256(b)
	return Key{string(hex.AppendEncode([]byte("ow1-"), sum[:20]))}, nil
}

func appendPrefixed(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
