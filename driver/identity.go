package driver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/onceward/onceward/key"
)

// Limits of what a store takes, in bytes. They are checked in code by [Claim.Check], so that every store refuses
// the same input with the same error whatever its column types are.
const (
	MaxKey       = 255
	MaxScopePart = 255
	MaxOperation = 64
	MaxError     = 1024 // of Record.Error and Record.Resolution; the Guard cuts longer text at a rune
)

// ErrTooLong is returned by every store call whose text exceeds the limits of this package; nothing was written.
var ErrTooLong = errors.New("onceward: text longer than a store keeps")

// ID is what a record is stored under: the primary key on every store. See [Identify].
type ID [32]byte

// String returns the ID in hex.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Scope says whose key it is: a key means something only inside its scope. Parts may be empty; an empty part is a
// value like any other (never NULL), so an absent tenant equals only an absent tenant.
type Scope struct {
	Namespace string // one deployment or product
	Tenant    string
	Caller    string // the authenticated client
}

// IsZero reports whether no part is set.
func (s Scope) IsZero() bool { return s == Scope{} }

// Identify derives a record's ID: SHA-256 over the length-prefixed scope parts, operation and key. A fixed-size
// binary key ends collation, padding, truncation, index-length and NULL traps in one stroke.
//
// When the key's text is a UUIDv7 or ULID, its 48-bit time stands in front of the shortened digest. That is a pure
// function of the key, and keeps inserts in time order (random keys touch a random index leaf each).
func Identify(scope Scope, operation, keyText string) ID {
	var buf [512]byte
	b := buf[:0]
	for _, part := range [...]string{scope.Namespace, scope.Tenant, scope.Caller, operation, keyText} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	id := ID(sha256.Sum256(b))
	if prefix, ok := key.TimePrefix(keyText); ok {
		copy(id[len(prefix):], id[:]) // shortened digest behind the time
		copy(id[:], prefix[:])
	}
	return id
}
