package onceward

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Codec turns a result into the bytes that are stored, and back. It must be safe for concurrent use, and its name
// must stay: it is stored with every result.
type Codec interface {
	Name() string
	Encode(v any) ([]byte, error)
	Decode(data []byte, into any) error
	// Check is asked once per type, before the work first runs: a type that would lose something on the way is an
	// error.
	Check(t reflect.Type) error
}

// JSON is the default codec: encoding/json, with numbers in any as json.Number so that integers above 2^53 stay
// exact. Fields that JSON would drop are an error of Check; see lossy fields there.
type JSON struct{}

// Name returns "json".
func (JSON) Name() string { return "json" }

// Encode marshals v as encoding/json marshals a pointer to it, so that marshalers with pointer receivers are heard.
func (JSON) Encode(v any) ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return json.Marshal(p.Interface())
}

// Decode unmarshals data, which must be one JSON value.
func (JSON) Decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("onceward: the stored result holds more than one JSON value")
	}
	return nil
}

// Check refuses types that JSON can't bring back: channels, functions, interfaces with methods, and struct fields
// that are dropped (unexported, `json:"-"`, or hidden by another of the same name) unless they carry the tag
// `onceward:"drop"`. Types with their own marshaler are trusted, also when they have it from a type they embed.
func (JSON) Check(t reflect.Type) error { return (&lossy{}).value(t, t.String(), true) }

// Raw is the codec for results that are bytes already: []byte and string pass through. The bytes are not copied on
// every path: write to them neither after the work returned them nor after a replay.
type Raw struct{}

// Name returns "raw".
func (Raw) Name() string { return "raw" }

// Encode returns the bytes of a []byte or string.
func (Raw) Encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("onceward: the raw codec takes []byte or string, not %T", v)
}

// Decode sets a *[]byte or *string.
func (Raw) Decode(data []byte, into any) error {
	switch into := into.(type) {
	case *[]byte:
		*into = data
		return nil
	case *string:
		*into = string(data)
		return nil
	}
	return fmt.Errorf("onceward: the raw codec gives []byte or string, not %T", into)
}

// Check refuses any other type.
func (Raw) Check(t reflect.Type) error {
	if t == reflect.TypeFor[[]byte]() || t == reflect.TypeFor[string]() {
		return nil
	}
	return fmt.Errorf("onceward: the raw codec takes []byte or string, not %v", t)
}

// checkType asks the codec once per type.
func (op *Op) checkType(t reflect.Type) error {
	if known, ok := op.types.Load(t); ok {
		return *known.(*error)
	}
	err := op.policy.Codec.Check(t)
	if err != nil {
		err = fmt.Errorf("onceward: a result of operation %q would not come back as it was: %w", op.policy.Name, err)
	}
	op.types.Store(t, &err)
	return err
}

// encode turns a value into a result. When that fails the work is done all the same: the result is a tombstone.
func encode[T any](c Codec, v T) (result Result, err error) {
	if data, ok := any(&v).(*[]byte); ok && isRaw(c) && *data != nil {
		return Result{Codec: c.Name(), Data: *data}, nil
	}
	return encodeAny(c, v)
}

// isRaw reports whether c is Raw. Its bytes take a path of their own: a Codec's interface makes copies on the heap.
func isRaw(c Codec) bool {
	_, ok := c.(Raw)
	return ok
}

func encodeAny(c Codec, v any) (result Result, err error) {
	defer func() {
		if p := recover(); p != nil { // a marshaler of the user's
			result, err = Result{Codec: c.Name(), Tombstone: true}, fmt.Errorf("onceward: encoding the result panicked: %v", p)
		}
	}()
	data, err := c.Encode(v)
	if err != nil {
		return Result{Codec: c.Name(), Tombstone: true}, err
	}
	if data == nil {
		data = []byte{}
	}
	return Result{Codec: c.Name(), Data: data}, nil
}

// decode gives a stored result its type.
func decode[T any](c Codec, r Result) (v T, err error) {
	if r.Tombstone {
		return v, ErrResultNotKept
	}
	if r.Codec != c.Name() {
		return v, &Error{Code: CodeCorruptRecord, Detail: fmt.Sprintf("its result was written by codec %q, the operation has %q", r.Codec, c.Name())}
	}
	if data, ok := any(&v).(*[]byte); ok && isRaw(c) {
		*data = r.Data
		return v, nil
	}
	return decodeAny[T](c, r.Data)
}

func decodeAny[T any](c Codec, data []byte) (v T, err error) {
	defer func() {
		if p := recover(); p != nil { // an unmarshaler of the user's
			var zero T
			v, err = zero, &Error{Code: CodeCorruptRecord, Detail: fmt.Sprintf("decoding its result panicked: %v", p)}
		}
	}()
	if err := c.Decode(data, &v); err != nil {
		var zero T
		return zero, &Error{Code: CodeCorruptRecord, Detail: "its result can't be decoded", Cause: err}
	}
	return v, nil
}
