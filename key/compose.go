package key

import (
	"database/sql/driver"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// Compose joins parts with colons into a key: Compose("pay", orderID, 7) is pay:o-1:7. Parts are escaped first, so
// different texts never meet in one key (Escape).
//
// A part is, first match: a Key (its text); a string or integer kind, named or not (its value, never its String); an
// encoding.TextMarshaler; a fmt.Stringer. Everything else is refused, with ErrInvalid that names the part by number:
// nothing, nil, an empty text, and whatever is not the same on a retry or has no one text (times, durations, floats,
// booleans, bytes). Integer 7 and text "7" are the same part. Above MaxLen the error is ErrTooLong.
func Compose(parts ...any) (Key, error) {
	if len(parts) == 0 {
		return Key{}, fmt.Errorf("%w: Compose got no parts: name the intent by its business ids", ErrInvalid)
	}
	buf := make([]byte, 0, 64)
	for i, part := range parts {
		text, problem := partText(part)
		if problem == "" && text == "" {
			problem = "is empty: an absent id would make strangers share a key"
		}
		if problem != "" {
			return Key{}, fmt.Errorf("%w: part %d of %d (%T) %s", ErrInvalid, i+1, len(parts), part, problem)
		}
		if i > 0 {
			buf = append(buf, ':')
		}
		buf = appendEscaped(buf, text)
	}
	if len(buf) > MaxLen {
		return Key{}, fmt.Errorf("%w: the parts make %d bytes, at most %d are allowed: compose fewer, and Derive a key with the rest as its path", ErrTooLong, len(buf), MaxLen)
	}
	return Key{string(buf)}, nil
}

// Escape writes colons, percent signs, blanks and every byte outside 0x21 to 0x7E as % and two upper-case hex digits,
// so that the result can stand between the colons of a key. It is injective.
func Escape(part string) string {
	for i := 0; i < len(part); i++ {
		if escaped(part[i]) {
			return string(appendEscaped(make([]byte, 0, len(part)+16), part))
		}
	}
	return part
}

func appendEscaped(b []byte, part string) []byte {
	const hexDigits = "0123456789ABCDEF"
	for i := 0; i < len(part); i++ {
		if c := part[i]; escaped(c) {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

func escaped(c byte) bool { return c <= ' ' || c > '~' || c == ':' || c == '%' }

const (
	takesNoTime = "tells a time: a key takes no time, it must be the same on every retry (a planned time goes in as text of your own)"
	isNil       = "is nil: an absent id would make strangers share a key"
)

// partText returns the text of a part, or what is wrong with it.
func partText(part any) (text, problem string) {
	switch p := part.(type) {
	case nil:
		return "", isNil
	case string:
		return p, ""
	case int:
		return strconv.Itoa(p), ""
	case time.Duration:
		return "", takesNoTime
	}
	v := reflect.ValueOf(part)
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if v.IsNil() {
			return "", isNil
		}
	case reflect.String:
		return v.String(), "" // never String(): a text made for people may hide or round
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), ""
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(v.Uint(), 10), ""
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "", "is a floating-point number: its text is not exact, use an integer of minor units"
	case reflect.Bool:
		return "", "is a boolean: spell out what it means"
	}
	if p, ok := part.(driver.Valuer); ok { // ids that can be NULL say so here, and "null" as text
		if value, err := p.Value(); err == nil && value == nil {
			return "", isNil
		}
	}
	switch p := part.(type) {
	case interface{ Reveal() string }: // a Key, or what embeds one: its String is only a digest
		return p.Reveal(), ""
	case interface{ UnixNano() int64 }, interface{ AsTime() time.Time }, interface{ AsDuration() time.Duration }:
		return "", takesNoTime // time.Time, what embeds it, protobuf's
	case encoding.TextMarshaler:
		b, err := p.MarshalText()
		if err != nil {
			return "", fmt.Sprintf("can't be written as text: its MarshalText failed (%T)", err)
		}
		return string(b), ""
	case fmt.Stringer:
		return p.String(), ""
	}
	return "", "is of a kind that has no one text: pass a string, an integer, or an id type with MarshalText or String"
}
