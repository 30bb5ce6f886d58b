// Package key holds the idempotency key: what names one intent of a client, the same however often it is retried.
//
// A key is 1 to 255 bytes of printable ASCII with no blank at either end, compared byte for byte. Keys can be
// secrets, so a [Key] prints only a digest of itself; [Key.Reveal] gives the text.
package key

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// MaxLen is the length of the longest key in bytes.
const MaxLen = 255

// Errors of this package. ErrTooLong is also an ErrInvalid.
var (
	ErrMissing = errors.New("key: no key: send one, the same on every retry of one intent")
	ErrInvalid = errors.New("key: not a valid key")
	ErrTooLong = fmt.Errorf("%w: longer than %d bytes", ErrInvalid, MaxLen)
)

// Key is a valid key, or none: the zero value. It is comparable and immutable.
type Key struct{ text string }

// Parse takes a key's text as it is. Errors: ErrMissing for an empty or blank text, ErrInvalid, ErrTooLong.
func Parse(text string) (Key, error) {
	if strings.Trim(text, " \t") == "" {
		return Key{}, ErrMissing
	}
	if len(text) > MaxLen {
		return Key{}, fmt.Errorf("%w: it has %d", ErrTooLong, len(text))
	}
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c > 0x7e {
			return Key{}, fmt.Errorf("%w: byte %d is 0x%02x; use printable ASCII, 0x20 to 0x7e", ErrInvalid, i+1, c)
		}
	}
	if text[0] == ' ' || text[len(text)-1] == ' ' {
		return Key{}, fmt.Errorf("%w: it begins or ends with a blank; remove it", ErrInvalid)
	}
	return Key{text: text}, nil
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.text == "" }

// Reveal returns the text. Do not log it.
func (k Key) Reveal() string { return k.text }

// Digest returns the first 12 hex digits of the text's SHA-256: enough to find a key in logs by.
func (k Key) Digest() string {
	sum := sha256.Sum256([]byte(k.text))
	return hex.EncodeToString(sum[:6])
}

// String returns "key:" and the digest, or "key:none".
func (k Key) String() string {
	if k.IsZero() {
		return "key:none"
	}
	return "key:" + k.Digest()
}

// Format keeps every verb of fmt from showing the text.
func (k Key) Format(f fmt.State, verb rune) {
	if verb == 'q' {
		fmt.Fprintf(f, "%q", k.String())
		return
	}
	_, _ = f.Write([]byte(k.String()))
}

// LogValue logs the digest.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText writes the digest, so that a key in a struct does not leak into JSON. There is no way back.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
