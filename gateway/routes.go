package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Matches are the patterns of routes, to be checked one after the other. The zero value has none.
type Matches struct{ mux http.ServeMux }

// Add reports what is wrong with a route's pattern, by itself or beside those before it.
func (m *Matches) Add(pattern string) error {
	return handle(&m.mux, pattern, http.NotFoundHandler())
}

// registered is what a ServeMux tells of our own source, which is of no use to whoever wrote the pattern.
var registered = regexp.MustCompile(` \(registered at [^)]*\)`)

// handle registers a pattern; a bad one, or one that conflicts, is an error instead of a panic.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the pattern can't be used: %s", registered.ReplaceAllString(fmt.Sprint(p), ""))
		}
	}()
	mux.Handle(pattern, h)
	return nil
}

// routes find a request's route by the rules of http.ServeMux, but never answer: a redirect is the service's to make.
type routes struct {
	mux *http.ServeMux
	all []*route
}

func (rs *routes) add(to *route) error {
	if err := handle(rs.mux, to.pattern, to); err != nil {
		return err
	}
	rs.all = append(rs.all, to)
	return handle(&to.alone, to.pattern, to)
}

// of returns a request's route, or nil. It is found by the clean path, for //pay may well be /pay to the service.
func (rs *routes) of(r *http.Request) *route {
	if len(rs.all) == 0 {
		return nil
	}
	given := r.URL.EscapedPath()
	to := rs.at(r, given, clean(given))
	if to == nil && strings.Contains(strings.ToLower(given), "%2f") { // a service that decodes first sees a slash
		to = rs.at(r, given, (&url.URL{Path: clean(r.URL.Path)}).EscapedPath())
	}
	return to
}

// at returns the route of a path in place of the given one.
func (rs *routes) at(r *http.Request, given, escaped string) *route {
	if escaped != given {
		text, err := url.PathUnescape(escaped)
		if err != nil {
			return nil
		}
		c, u := *r, *r.URL
		u.Path, u.RawPath = text, escaped
		c.URL = &u
		r = &c
	}
	h, pattern := rs.mux.Handler(r)
	if to, ok := h.(*route); ok || pattern == "" {
		return to
	}
	// The mux would redirect /sub to the route /sub/. What else knows /sub decides; those never do so by a redirect.
	var others http.ServeMux
	for _, one := range rs.all {
		if h, _ := one.alone.Handler(r); h == http.Handler(one) {
			_ = handle(&others, one.pattern, one) // was fine beside all others
		}
	}
	h, _ = others.Handler(r)
	to, _ := h.(*route)
	return to
}

var encodedDots = strings.NewReplacer("%2e", ".", "%2E", ".")

// clean takes out what makes no difference: double slashes and dots, encoded or not.
func clean(given string) string {
	tidy := path.Clean("/" + encodedDots.Replace(given))
	if tidy != "/" && strings.HasSuffix(given, "/") {
		tidy += "/"
	}
	return tidy
}
