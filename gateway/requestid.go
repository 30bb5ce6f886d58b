package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"

	"github.com/onceward/onceward/key"
)

const requestIDHeader = "X-Request-Id"

// RequestID returns the X-Request-Id of the gateway's request that ctx belongs to, the attempt's and the store's calls
// included, for logs; empty outside of one. Where it is also the key, it is the key's digest.
func RequestID(ctx context.Context) string {
	if v := visitOf(ctx); v != nil {
		return v.shown
	}
	return ""
}

// requestID returns the id of a request, made if the client's can't be passed on, and how logs show it. The request
// itself is left alone: what we make is no key.
func (to *route) requestID(r *http.Request) (id, shown string) {
	lines := r.Header[requestIDHeader]
	if len(lines) == 0 {
		id = newRequestID()
		return id, id
	}
	if slices.Contains(to.keyHeaders, requestIDHeader) {
		if k, err := key.ParseHeader(lines); err == nil {
			return lines[0], k.Digest()
		}
	}
	if id = lines[0]; !validRequestID(id) {
		id = newRequestID()
		return id, id
	}
	for _, name := range to.keyHeaders { // a client may use one text for both
		if k, err := key.ParseHeader(r.Header[name]); err == nil && k.Reveal() == id {
			return id, k.Digest()
		}
	}
	return id, id
}

// validRequestID admits what is safe in logs and headers of every hop.
func validRequestID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == ':') {
			return false
		}
	}
	return true
}

func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	return hex.EncodeToString(b[:])
}
