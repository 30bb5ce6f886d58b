package oncehttp

import (
	"net/http"
	"strings"

	"github.com/onceward/onceward/fingerprint"
)

// fingerprintRules say what of a request does not count: the fields that carry the key, and what a route lists.
type fingerprintRules struct {
	json  []string // RFC 6901 pointers
	form  []string
	query []string
}

// sum digests method, path, query, media type and body. Headers do not count: they differ from try to try.
func (f *fingerprintRules) sum(r *http.Request, body []byte) fingerprint.Sum {
	h := fingerprint.New()
	h.Text("method", r.Method)
	h.Text("path", r.URL.EscapedPath())
	h.Query("query", r.URL.RawQuery, f.query)
	if len(body) == 0 {
		return h.Sum() // an empty body equals only an empty one, whatever type it claims
	}
	media := mediaType(r)
	h.Text("type", media)
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		h.JSON("body", body, f.json)
	case media == "application/x-www-form-urlencoded":
		h.Form("body", body, f.form)
	default:
		h.Bytes("body", body)
	}
	return h.Sum()
}
