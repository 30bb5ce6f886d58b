package key

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Compose builds a key from the parts that name an intent, such as user and client request id, joined by ':'.
// Separators inside a part are escaped, so that different parts never make the same key. Parts are strings, integers,
// Keys, and types with MarshalText or String (a UUID type, say). It takes no time and no duration: a key must be the
// same on the retry. Empty and nil parts are refused, because they would let different intents share a key.
//
// Errors: ErrInvalid with the part's number; ErrTooLong, for which Derive is the way out.
func Compose(parts ...any) (Key, error) {
	if len(parts) == 0 {
		return Key{}, fmt.Errorf("%w: Compose needs at least one part", ErrInvalid)
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		text, err := partText(p)
		if err == nil && text == "" {
			err = errors.New("is empty")
		}
		if err != nil {
			return Key{}, fmt.Errorf("%w: part %d %w", ErrInvalid, i+1, err)
		}
		texts[i] = Escape(text)
	}
	k, err := Parse(strings.Join(texts, ":"))
	if errors.Is(err, ErrTooLong) {
		err = fmt.Errorf("%w: shorten its parts by Derive", err)
	}
	return k, err
}

// Escape makes a part safe to stand between separators: ':', '%', blanks and everything outside printable ASCII
// become %XX.
func Escape(part string) string {
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; c <= 0x20 || c > 0x7e || c == ':' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func partText(p any) (string, error) {
	v := reflect.ValueOf(p)
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return "", errors.New("is nil")
	}
	switch p := p.(type) {
	case Key:
		return p.Reveal(), nil
	case time.Time, *time.Time, time.Duration:
		return "", errors.New("is a time: a key must be the same on every retry, so it takes none")
	case encoding.TextMarshaler:
		text, err := p.MarshalText()
		return string(text), err
	case fmt.Stringer:
		return p.String(), nil
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	return "", fmt.Errorf("is a %T: use strings, integers, or types with String", p)
}

// Derive makes the key of a part of the work from the key of the whole: the same on every attempt, different for
// every path. Errors: ErrMissing for a zero parent, ErrInvalid for an empty path or path element.
func Derive(parent Key, path ...string) (Key, error) {
	if parent.IsZero() {
		return Key{}, ErrMissing
	}
	if len(path) == 0 {
		return Key{}, fmt.Errorf("%w: Derive needs a name", ErrInvalid)
	}
	h := sha256.New()
	for _, part := range append([]string{"onceward-derive-v1", parent.text}, path...) {
		if part == "" {
			return Key{}, fmt.Errorf("%w: a derived key's name has an empty element", ErrInvalid)
		}
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		h.Write([]byte(part))
	}
	return Key{text: "ow1-" + hex.EncodeToString(h.Sum(nil)[:20])}, nil
}
