// Package fingerprint digests a request, to see one key used for two intents.
//
// A digest is versioned: the first byte of a [Sum] names the rules it was made by, and the rules of a version never
// change (testdata/v1.json holds a corpus of them). JSON is digested by value: member order, white space and
// equivalent escapes do not matter, array order does, and numbers are compared by their exact decimal value, so 1, 1.0
// and 1e0 are one number and 9007199254740993 is not 9007199254740992.
package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
)

// Version is the version of the rules that new sums are made by.
const Version = 1

// Sum is a versioned digest. The zero value is no sum; every made sum differs from it.
type Sum [33]byte

// IsZero reports whether s was never made.
func (s Sum) IsZero() bool { return s == Sum{} }

// Version returns the version of the rules that s was made by.
func (s Sum) Version() byte { return s[0] }

// String returns s in hex.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Hasher collects the parts of a request. Every part is framed by its kind, name and length, so that no two different
// lists of parts run together. Not safe for concurrent use.
type Hasher struct{ h hash.Hash }

// New returns a Hasher by the rules of Version.
func New() *Hasher {
	h := &Hasher{h: sha256.New()}
	h.h.Write([]byte("onceward-fingerprint-v1"))
	return h
}

// The kinds of parts. They keep the bytes of one kind from equalling those of another.
const (
	kindText  = 't'
	kindBytes = 'b'
	kindJSON  = 'j'
	kindPairs = 'p'
)

// Text adds a named text.
func (h *Hasher) Text(name, value string) { h.part(kindText, name, []byte(value)) }

// Bytes adds a body as it is.
func (h *Hasher) Bytes(name string, body []byte) { h.part(kindBytes, name, body) }

// JSON adds a body by its value, without the values that the RFC 6901 pointers in leaveOut name. A body that is not one
// JSON value, is not UTF-8, has a member twice in one object, or is nested deeper than 512 is added as bytes.
func (h *Hasher) JSON(name string, body []byte, leaveOut []string) {
	canonical, ok := canonicalJSON(body, leaveOut)
	if !ok {
		h.Bytes(name, body)
		return
	}
	h.part(kindJSON, name, canonical)
}

// Sum returns the digest of what was added.
func (h *Hasher) Sum() (s Sum) {
	s[0] = Version
	h.h.Sum(s[1:1])
	return s
}

func (h *Hasher) part(kind byte, name string, body []byte) {
	var frame [64]byte
	b := append(frame[:0], kind)
	b = binary.BigEndian.AppendUint64(b, uint64(len(name)))
	b = append(b, name...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(body)))
	h.h.Write(b)
	h.h.Write(body)
}

// Of digests the request of a function call: nil, bytes as they are, or anything that marshals to JSON by its value.
func Of(request any) (Sum, error) {
	h := New()
	switch r := request.(type) {
	case nil:
	case []byte:
		h.Bytes("request", r)
	case json.RawMessage:
		h.JSON("request", r, nil)
	default:
		body, err := json.Marshal(request)
		if err != nil {
			return Sum{}, err
		}
		h.JSON("request", body, nil)
	}
	return h.Sum(), nil
}
