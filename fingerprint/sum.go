package fingerprint

import "encoding/hex"

// Version is the version of the rules that this package applies.
const Version = 1

// Sum is a fingerprint: its version, then 32 bytes of digest. The zero value is none. Sums are comparable; compare the
// versions first, since sums of two versions differ even for one request.
type Sum [33]byte

// IsZero reports whether s is none.
func (s Sum) IsZero() bool { return s == Sum{} }

// Version returns the version of the rules that made s, 0 for none.
func (s Sum) Version() byte { return s[0] }

// String returns s in hex, version first.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }
