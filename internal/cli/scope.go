package cli

import (
	"errors"
	"net/http"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/config"
)

const basicUser = "basic:user"

// parseScope reads who the caller is; from says where it was said. The proxy in front must have authenticated what it
// names: a duplicate is answered before the service could refuse it.
func parseScope(text, from string) (func(*http.Request) (onceward.Scope, error), error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case text == basicUser:
		return func(r *http.Request) (onceward.Scope, error) {
			user, _, ok := r.BasicAuth()
			if !ok || user == "" {
				return onceward.Scope{}, errors.New("the request has no basic authentication")
			}
			return onceward.Scope{Caller: user}, nil
		}, nil
	case kind == "header" && strings.EqualFold(name, "Authorization"):
		return nil, usage("%s %q: a rotated token would be a new scope, and every retry after it a new execution; use basic:user, or a header that holds the caller's identity", from, text)
	case kind == "header" && name != "" && !config.IsHeaderName(name):
		return nil, usage("%s %q: %q is no name of a header: write it like header:X-Account, without blanks", from, text, name)
	case kind == "header" && name != "":
		return func(r *http.Request) (onceward.Scope, error) {
			values := r.Header.Values(name)
			if len(values) != 1 || strings.TrimSpace(values[0]) == "" {
				return onceward.Scope{}, errors.New("the header " + name + " must stand there once")
			}
			return onceward.Scope{Caller: values[0]}, nil
		}, nil
	}
	return nil, usage("%s %q: use header:NAME or basic:user", from, text)
}
