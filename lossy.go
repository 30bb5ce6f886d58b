package onceward

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// lossy walks a type and finds the first place where JSON would lose something.
type lossy struct {
	seen map[spot]bool
}

// spot is a type and whether its values can be addressed: a marshaler with a pointer receiver is heard only then.
type spot struct {
	t    reflect.Type
	addr bool
}

// value checks a type; at names the place.
func (l *lossy) value(t reflect.Type, at string, addr bool) error {
	if l.seen[spot{t, addr}] {
		return nil
	}
	if l.seen == nil {
		l.seen = map[spot]bool{}
	}
	l.seen[spot{t, addr}] = true
	if trusted, why := ownMarshaler(t, addr); trusted {
		return nil
	} else if why != "" {
		return fmt.Errorf("%s (%v) %s", at, t, why)
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("%s is a %v, which JSON can't hold", at, t.Kind())
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%s is the interface %v, which can't be decoded", at, t)
		}
	case reflect.Pointer, reflect.Slice:
		return l.value(t.Elem(), at+"[]", true)
	case reflect.Array:
		return l.value(t.Elem(), at+"[]", addr)
	case reflect.Map:
		k := t.Key()
		writes, reads := k.Implements(textMarshaler), reflect.PointerTo(k).Implements(textUnmarshaler)
		switch {
		case writes && reads:
		case writes != reads:
			return fmt.Errorf("%s has keys of type %v, which have one of MarshalText and UnmarshalText: give them both", at, k)
		case k.Kind() == reflect.String, k.Kind() >= reflect.Int && k.Kind() <= reflect.Uintptr:
		default:
			return fmt.Errorf("%s has keys of type %v, which JSON can't hold", at, k)
		}
		return l.value(t.Elem(), at+"[]", false)
	case reflect.Struct:
		return l.fields(t, at, addr, map[string]string{}, nil)
	}
	return nil
}

// fields checks a struct. names holds the JSON names that the struct it is embedded in already has, outer the structs
// on the way to it.
func (l *lossy) fields(t reflect.Type, at string, addr bool, names map[string]string, outer []reflect.Type) error {
	outer = append(outer, t)
	for i := range t.NumField() {
		f := t.Field(i)
		place := at + "." + f.Name
		if f.Tag.Get("onceward") == "drop" || f.Name == "_" {
			continue
		}
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" {
			inner, addr := f.Type, addr
			if inner.Kind() == reflect.Pointer {
				inner, addr = inner.Elem(), true
				if !f.IsExported() {
					return fmt.Errorf("%s embeds a pointer to an unexported struct, which JSON can't decode", place)
				}
			}
			if inner.Kind() == reflect.Struct { // JSON takes it apart, whatever methods it has
				if slices.Contains(outer, inner) {
					return fmt.Errorf("%s embeds the struct that it is in, and JSON drops that", place)
				}
				if err := l.fields(inner, place, addr, names, outer); err != nil {
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
		if other, taken := names[name]; taken {
			return fmt.Errorf("%s and %s have the same JSON name %q, so one of them is lost", other, place, name)
		}
		names[name] = place
		if err := l.value(f.Type, place, addr); err != nil {
			return err
		}
	}
	return nil
}

// ownMarshaler reports whether t goes both ways by methods of its own, and what is wrong when it goes one way only.
// What is decoded into can always be addressed.
func ownMarshaler(t reflect.Type, addr bool) (trusted bool, why string) {
	if t.Kind() == reflect.Pointer {
		return false, "" // its element is asked
	}
	p := reflect.PointerTo(t)
	out := t
	if addr {
		out = p
	}
	switch {
	case out.Implements(jsonMarshaler) && p.Implements(jsonUnmarshaler):
		return true, ""
	case out.Implements(jsonMarshaler):
		return false, "has MarshalJSON and no UnmarshalJSON"
	case p.Implements(jsonMarshaler):
		return false, "has a MarshalJSON on its pointer, which JSON does not call in a map: make it a map of pointers"
	case out.Implements(textMarshaler) && p.Implements(textUnmarshaler):
		return true, ""
	case out.Implements(textMarshaler):
		return false, "has MarshalText and no UnmarshalText"
	case p.Implements(textMarshaler):
		return false, "has a MarshalText on its pointer, which JSON does not call in a map: make it a map of pointers"
	}
	return false, ""
}
