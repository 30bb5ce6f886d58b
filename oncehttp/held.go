package oncehttp

import (
	"maps"
	"net/http"
	"strings"
)

// held is what becomes of a writer's headers while its answer is held back. The handler works on them itself; here stand
// what was there before it, so that nothing of an answer that is not sent is left behind, and what its WriteHeader found,
// which is what is sent.
type held struct {
	outer  []field
	frozen []field
	fields [6]field    // memory for both
	late   http.Header // as the handler left them, if it went on after WriteHeader
}

// begin notes what is there before the handler runs.
func (x *held) begin(h http.Header) { x.outer = appendFields(x.fields[:0], h) }

// freeze notes what WriteHeader found.
func (x *held) freeze(h http.Header) { x.frozen = appendFields(x.outer[len(x.outer):], h) }

// settle takes back what the handler changed after WriteHeader.
func (x *held) settle(h http.Header) {
	changed := len(h) != len(x.frozen)
	for _, f := range x.frozen {
		values, has := h[f.name]
		changed = changed || !has || len(values) != len(f.values) || len(values) > 0 && &values[0] != &f.values[0]
	}
	if changed {
		x.late = maps.Clone(h)
		replace(h, x.frozen)
	}
}

// restore takes back all that the handler did.
func (x *held) restore(h http.Header) { replace(h, x.outer) }

// trailers are what may change after WriteHeader. They are not replayed.
func (x *held) trailers(h http.Header) {
	if x.late == nil {
		return
	}
	for _, names := range h["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if values, has := x.late[name]; has {
				h[name] = values
			}
		}
	}
	for name, values := range x.late {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			h[name] = values
		}
	}
}

func appendFields(fields []field, h http.Header) []field {
	for name, values := range h {
		fields = append(fields, field{name, values})
	}
	return fields
}

func replace(h http.Header, fields []field) {
	clear(h)
	for _, f := range fields {
		h[f.name] = f.values
	}
}
