package fingerprint

import (
	"encoding/json"
	"fmt"
)

// Of returns the fingerprint of a function's argument: nil is the sum of nothing (a sum like any other), []byte is
// compared as bytes and string as text, json.RawMessage by its JSON value, and anything else by the value of what
// json.Marshal makes of it. What JSON drops (unexported fields, invalid UTF-8 in strings) is not seen.
//
// The error is json.Marshal's, with the type.
func Of(v any) (Sum, error) {
	var h Hasher
	switch v := v.(type) {
	case nil:
	case []byte:
		h.Bytes("", v)
	case string:
		h.Text("", v)
	case json.RawMessage:
		h.JSON("", v, nil)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return Sum{}, fmt.Errorf("fingerprint: %T does not marshal to JSON: pass bytes, or a sum made by a Hasher: %w", v, err)
		}
		h.JSON("", b, nil)
	}
	return h.Sum(), nil
}
