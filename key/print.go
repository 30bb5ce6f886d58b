package key

import (
	"fmt"
	"io"
	"log/slog"
)

// String returns the digest.
func (k Key) String() string { return k.Digest() }

// GoString returns the digest as it stands under %#v.
func (k Key) GoString() string { return "key.Key(" + k.Digest() + ")" }

// Format prints the digest under every verb; without it a wrong verb such as %d would print the fields.
func (k Key) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('#'):
		io.WriteString(f, k.GoString())
	case verb == 'v' || verb == 's' || verb == 'q' || verb == 'x' || verb == 'X':
		fmt.Fprintf(f, fmt.FormatString(f, verb), k.Digest())
	default:
		io.WriteString(f, k.Digest())
	}
}

// LogValue logs the digest.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.Digest()) }

// MarshalText writes the digest, so that JSON and XML show it too. There is no way back, hence no UnmarshalText: to
// keep or send a key, use Reveal or HeaderValue.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.Digest()), nil }
