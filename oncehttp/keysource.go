package oncehttp

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/onceward/onceward/key"
)

// KeySource finds a request's key. The values it returns follow the rules of one header's lines: none, or blank, is
// no key.
type KeySource struct {
	name     string // as in the configuration: header:NAME
	needBody bool
	leaveOut func(f *fingerprintRules)
	find     func(r *http.Request, body []byte) ([]string, error)
	raw      bool // the text is the key as it is, not a header's value
}

// DefaultKeySources are Idempotency-Key, then X-Idempotency-Key.
func DefaultKeySources() []KeySource {
	return []KeySource{FromHeader("Idempotency-Key"), FromHeader("X-Idempotency-Key")}
}

// FromHeader takes the key from a header.
func FromHeader(name string) KeySource {
	canonical := http.CanonicalHeaderKey(name)
	return KeySource{name: "header:" + name, find: func(r *http.Request, _ []byte) ([]string, error) { return r.Header[canonical], nil }}
}

// FromQuery takes the key from a parameter of the query, which then does not count for the fingerprint.
func FromQuery(name string) KeySource {
	return KeySource{
		name: "query:" + name, raw: true,
		find:     func(r *http.Request, _ []byte) ([]string, error) { return r.URL.Query()[name], nil },
		leaveOut: func(f *fingerprintRules) { f.query = append(f.query, name) },
	}
}

// FromJSON takes the key from a string or integer of a JSON body, named by an RFC 6901 pointer; that value then does
// not count for the fingerprint. Null, empty, missing and values of other types are no key; a name that stands twice on the
// way is a key that is not valid.
func FromJSON(pointer string) KeySource {
	return KeySource{
		name: "json:" + pointer, raw: true, needBody: true,
		find:     func(_ *http.Request, body []byte) ([]string, error) { return jsonText(body, pointer) },
		leaveOut: func(f *fingerprintRules) { f.json = append(f.json, pointer) },
	}
}

// FromForm takes the key from a field of a URL-encoded body, which then does not count for the fingerprint.
func FromForm(name string) KeySource {
	return KeySource{
		name: "form:" + name, raw: true, needBody: true,
		find: func(r *http.Request, body []byte) ([]string, error) {
			if mediaType(r) != "application/x-www-form-urlencoded" {
				return nil, nil
			}
			return formText(body, name), nil
		},
		leaveOut: func(f *fingerprintRules) { f.form = append(f.form, name) },
	}
}

// ParseKeySource reads header:NAME, query:NAME, json:/POINTER or form:NAME.
func ParseKeySource(text string) (KeySource, error) {
	kind, name, ok := strings.Cut(text, ":")
	switch {
	case ok && name != "" && kind == "header":
		return FromHeader(name), nil
	case ok && name != "" && kind == "query":
		return FromQuery(name), nil
	case ok && name != "" && kind == "form":
		return FromForm(name), nil
	case ok && strings.HasPrefix(name, "/") && kind == "json":
		return FromJSON(name), nil
	}
	return KeySource{}, fmt.Errorf("oncehttp: key source %q: use header:NAME, query:NAME, json:/POINTER or form:NAME", text)
}

// findKey asks the sources in order. The first present wins; a later one that disagrees is an error.
func findKey(sources []KeySource, r *http.Request, body []byte) (key.Key, error) {
	var found key.Key
	for i := range sources {
		s := &sources[i]
		values, err := s.find(r, body)
		if err == nil && len(values) == 0 {
			continue
		}
		var k key.Key
		switch {
		case err != nil:
		case !s.raw:
			k, err = key.ParseHeader(values)
		case len(values) > 1:
			err = fmt.Errorf("%w: it stands there %d times; send it once", key.ErrInvalid, len(values))
		default:
			k, err = key.Parse(values[0])
		}
		switch {
		case errors.Is(err, key.ErrMissing):
			continue
		case err != nil:
			return key.Key{}, fmt.Errorf("%s: %w", s.name, err)
		case found.IsZero():
			found = k
		case found != k:
			return key.Key{}, fmt.Errorf("%w: %s disagrees with another place; send one key", key.ErrInvalid, s.name)
		}
	}
	return found, nil
}

func mediaType(r *http.Request) string {
	lines := r.Header["Content-Type"]
	if len(lines) == 0 {
		return ""
	}
	text := lines[0]
	if text == "application/json" || text == "application/x-www-form-urlencoded" {
		return text // as parsing would say, without its map
	}
	t, _, err := mime.ParseMediaType(text)
	if err != nil {
		return ""
	}
	return t
}
