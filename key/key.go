package key

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// MaxLen is the length of the longest key, in bytes.
const MaxLen = 255

// Errors of this package, wrapped with what was wrong and what to do, never with the key's text. ErrTooLong is an
// ErrInvalid too.
var (
	ErrMissing = errors.New("key: missing")
	ErrInvalid = errors.New("key: invalid")
	ErrTooLong = fmt.Errorf("%w: too long", ErrInvalid)
)

// Key is a checked key. The zero value is no key. Keys are comparable, and equal when their texts are.
type Key struct{ text string }

// Parse checks text and makes it a Key, byte for byte. Nothing is trimmed, folded or normalised.
//
// Errors: ErrMissing when text is empty or only blanks, ErrTooLong, ErrInvalid.
func Parse(text string) (Key, error) {
	if strings.Trim(text, " \t") == "" {
		return Key{}, fmt.Errorf("%w: the text is empty or blank", ErrMissing)
	}
	if len(text) > MaxLen {
		return Key{}, fmt.Errorf("%w: %d bytes, at most %d are allowed: shorten it, or send its SHA-256 in hex", ErrTooLong, len(text), MaxLen)
	}
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c > '~' {
			return Key{}, fmt.Errorf("%w: byte %d of %d is 0x%02X, only printable ASCII is allowed: escape it", ErrInvalid, i+1, len(text), c)
		}
	}
	if text[0] == ' ' || text[len(text)-1] == ' ' {
		return Key{}, fmt.Errorf("%w: a blank at the beginning or end: trim it", ErrInvalid)
	}
	return Key{text}, nil
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k.text == "" }

// Reveal returns the text. Do not log it.
func (k Key) Reveal() string { return k.text }

// Digest returns what may be logged: "key:" and the first 12 hex digits of the text's SHA-256, "key:none" for no key.
// It tells keys apart for a reader; it does not hide a text that can be guessed.
func (k Key) Digest() string {
	if k.IsZero() {
		return "key:none"
	}
	sum := sha256.Sum256([]byte(k.text))
	var b [4 + 12]byte
	copy(b[:], "key:")
	hex.Encode(b[4:], sum[:6])
	return string(b[:])
}
