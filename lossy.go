package onceward

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// checkJSON walks a type and returns the first place where JSON would lose something. at names the place.
func checkJSON(t reflect.Type, at string, seen map[reflect.Type]bool) error {
	if seen[t] || hasMarshaler(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("%s is a %v, which JSON can't hold", at, t.Kind())
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%s is the interface %v, which can't be decoded", at, t)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkJSON(t.Elem(), at+"[]", seen)
	case reflect.Map:
		switch k := t.Key(); {
		case k.Kind() == reflect.String, k.Kind() >= reflect.Int && k.Kind() <= reflect.Uintptr:
		case k.Implements(textMarshaler) && reflect.PointerTo(k).Implements(textUnmarshaler):
		default:
			return fmt.Errorf("%s has keys of type %v, which JSON can't hold", at, k)
		}
		return checkJSON(t.Elem(), at+"[]", seen)
	case reflect.Struct:
		return checkFields(t, at, map[string]string{}, seen)
	}
	return nil
}

// checkFields checks a struct. names holds the JSON names that the struct it is embedded in already has.
func checkFields(t reflect.Type, at string, names map[string]string, seen map[reflect.Type]bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		place := at + "." + f.Name
		if f.Tag.Get("onceward") == "drop" || f.Name == "_" {
			continue
		}
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		embedded := f.Anonymous && name == ""
		if embedded {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
				if !f.IsExported() {
					return fmt.Errorf("%s embeds a pointer to an unexported struct, which JSON can't decode", place)
				}
			}
			if inner.Kind() == reflect.Struct && !hasMarshaler(f.Type) {
				if err := checkFields(inner, place, names, seen); err != nil {
					return err
				}
				continue
			}
		}
		if tag == "-" || !f.IsExported() {
			return fmt.Errorf("JSON drops %s: give it a JSON name, or excuse it with the tag `onceward:\"drop\"`", place)
		}
		if name == "" {
			name = f.Name
		}
		folded := strings.ToLower(name) // decoding ignores case
		if other, taken := names[folded]; taken {
			return fmt.Errorf("%s and %s have the same JSON name %q, so one of them is lost", other, place, name)
		}
		names[folded] = place
		if err := checkJSON(f.Type, place, seen); err != nil {
			return err
		}
	}
	return nil
}

// hasMarshaler reports whether t goes both ways by methods of its own.
func hasMarshaler(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return (t.Implements(jsonMarshaler) || p.Implements(jsonMarshaler)) && (p.Implements(jsonUnmarshaler) || t.Implements(jsonUnmarshaler)) ||
		(t.Implements(textMarshaler) || p.Implements(textMarshaler)) && (p.Implements(textUnmarshaler) || t.Implements(textUnmarshaler))
}
