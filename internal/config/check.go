package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/oncehttp"
)

// check returns every problem of a file's meaning, at its place and in the file's words.
func check(c *Config) error {
	k := checker{at: c.at, names: map[string]int{DefaultOperation: -1}}
	k.duration("$.lease", c.Lease, minLease)
	k.duration("$.drain", c.Drain, 0)
	k.duration("$.read_timeout", c.ReadTimeout, minOther)
	k.single()
	if c.Scope != "" && c.SingleTenant {
		k.bad("$.single_tenant", "scope and single_tenant exclude each other: whose key is a key?")
	}
	for i := range c.Routes {
		k.route(i, &c.Routes[i])
	}
	return errors.Join(k.problems...)
}

const (
	minLease = 10 * time.Millisecond // as in onceward.Operation
	minOther = time.Millisecond
)

var operationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) // as in onceward.Operation

type checker struct {
	at       place
	names    map[string]int // operations that are taken, by the route's index
	matches  gateway.Matches
	problems []error
}

// bad notes a problem at the place of a YAML path.
func (k *checker) bad(path, format string, args ...any) {
	k.problems = append(k.problems, fmt.Errorf("config %s: %w", k.at.of(path), fmt.Errorf(format, args...)))
}

// duration notes text that is no duration, or one that is too short. Left out is fine.
func (k *checker) duration(path string, d Duration, least time.Duration) {
	v, err := d.parse()
	switch {
	case err != nil:
		k.bad(path, "%w", err)
	case d != "" && v < least:
		k.bad(path, "%s is too short: at least %v", string(d), least)
	}
}

func (k *checker) route(i int, r *Route) {
	whole := fmt.Sprintf("$.routes[%d]", i)
	at := func(field string) string { return whole + "." + field }
	if r.Match == "" {
		k.bad(whole, `a route needs match, such as "POST /pay"`)
	} else if err := k.matches.Add(r.Match); err != nil {
		k.bad(at("match"), "%w", err)
	}
	k.name(i, r)
	k.methods(r, at)
	k.duration(at("retention"), r.Retention, minOther)
	k.duration(at("lease"), r.Lease, minLease)
	k.duration(at("timeout"), r.Timeout, minOther)
	k.duration(at("wait"), r.Wait, 0)
	k.duration(at("retried_for"), r.RetriedFor, minOther)
	if r.Resolve != "" {
		if _, err := gateway.CheckResolveURL(r.Resolve); err != nil {
			k.bad(at("resolve"), "%w", err)
		}
	}
	if kept := or(r.Retention.Value(), onceward.DefaultRetention); r.RetriedFor.Value() > kept {
		k.bad(at("retried_for"), "senders come again for %s and results are kept for %v: a late one would run the work again; make retention as long", string(r.RetriedFor), kept)
	}
	if r.Key != nil && len(r.Key) == 0 {
		k.bad(at("key"), "key is empty, so the default would hold: leave it out, or name where the key stands")
	}
	for n, text := range r.Key {
		k.keySource(fmt.Sprintf("%s[%d]", at("key"), n), text)
	}
	for n, text := range r.LeaveOut {
		k.leaveOut(fmt.Sprintf("%s[%d]", at("leave_out"), n), text)
	}
	for _, status := range slices.Sorted(maps.Keys(r.OnStatus)) {
		if status < 200 || status > 599 {
			k.bad(at("on_status"), "%d is not a final HTTP status", status)
		} else if _, err := oncehttp.ParseOutcome(r.OnStatus[status]); err != nil {
			k.bad(at("on_status"), "%w", err)
		}
	}
	k.statuses(at("on_status"))
	k.word(at("on_duplicate"), r.OnDuplicate, "return_first", "reject")
	k.word(at("on_store_down"), r.OnStoreDown, "closed", "open")
	if r.OnStoreDown == "open" && !r.Repeatable {
		k.bad(at("on_store_down"), "open runs requests unguarded, so the route needs repeatable: true")
	}
	k.count(at("max_attempts"), int64(r.MaxAttempts))
	k.count(at("max_body"), r.MaxBody)
	k.count(at("max_result"), int64(r.MaxResult))
}

func or(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}

// count notes what is no whole number, which the decoder would have cut, or is negative.
func (k *checker) count(at string, n int64) {
	switch node := k.at.node(at).(type) {
	case *ast.FloatNode, *ast.StringNode:
		k.bad(at, "%s is not a whole number: write it like 1000", node.GetToken().Value)
		return
	}
	if n < 0 {
		k.bad(at, "%d is negative: leave it out for the default", n)
	}
}

// statuses notes those of on_status that the decoder would have cut.
func (k *checker) statuses(at string) {
	var pairs []*ast.MappingValueNode
	switch node := k.at.node(at).(type) {
	case *ast.MappingNode:
		pairs = node.Values
	case *ast.MappingValueNode:
		pairs = append(pairs, node)
	}
	for _, pair := range pairs {
		if float, ok := pair.Key.(*ast.FloatNode); ok {
			k.bad(at, "%s is not a whole number: write a status like 409", float.GetToken().Value)
		}
	}
}

// single notes a second document in the file, which the decoder would have left unread.
func (k *checker) single() {
	if k.at.file == nil {
		return
	}
	for _, doc := range k.at.file.Docs[min(1, len(k.at.file.Docs)):] {
		switch body := doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.NullNode:
		default:
			k.problems = append(k.problems, fmt.Errorf("config %s: a second document begins here, and would not hold: make it one document, without ---", k.at.token(body)))
			return
		}
	}
}

func (k *checker) name(i int, r *Route) {
	at := fmt.Sprintf("$.routes[%d].operation", i)
	first, taken := k.names[r.Operation]
	switch {
	case r.Operation == "":
		k.bad(fmt.Sprintf("$.routes[%d]", i), "a route needs operation, the name of its work")
		return
	case !operationName.MatchString(r.Operation):
		k.bad(at, "operation %q: use 1 to 64 of a-z A-Z 0-9 . _ -, first a letter or digit", r.Operation)
	case taken && first < 0:
		k.bad(at, "operation %q is that of requests that no route names: give this route another", r.Operation)
	case taken:
		k.bad(at, "operation %q is route %d's already: give each route its own", r.Operation, first+1)
	}
	if !taken {
		k.names[r.Operation] = i
	}
}

// methods refuses a route under which no request would ever be guarded.
func (k *checker) methods(r *Route, at func(string) string) {
	method := matchMethod(r.Match)
	if method != "" && !knownMethod(method) {
		k.bad(at("match"), "%s is no HTTP method: write it like POST", method)
	}
	switch method {
	case http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		k.bad(at("match"), "%s requests do nothing that could be done twice: leave the route out, and they pass; or name the method that writes, such as POST", method)
		return
	}
	for n, name := range r.Methods {
		if name == "" || strings.ToUpper(name) != name {
			k.bad(fmt.Sprintf("%s[%d]", at("methods"), n), "method %q: write it in capitals, such as POST", name)
		} else if !knownMethod(name) {
			k.bad(fmt.Sprintf("%s[%d]", at("methods"), n), "%s is no HTTP method: write it like POST", name)
		}
	}
	if r.Methods != nil && len(r.Methods) == 0 {
		k.bad(at("methods"), "methods is empty, so nothing of this route would be guarded: leave it out for those that write")
	}
	if method != "" && len(r.Methods) > 0 && !slices.Contains(r.Methods, method) {
		k.bad(at("methods"), "match names %s and methods does not, so nothing of this route would be guarded: leave methods out", method)
	}
}

// knownMethod reports whether a method is registered with IANA: an unknown one is a typing error, and its route would match
// nothing.
func knownMethod(name string) bool {
	switch name {
	case "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LABEL", "LINK", "LOCK",
		"MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH", "PATCH", "POST",
		"PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK",
		"UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL", "PURGE": // the last is of caches, and as good as registered
		return true
	}
	return false
}

func (k *checker) keySource(at, text string) {
	if _, err := oncehttp.ParseKeySource(text); err != nil {
		k.bad(at, "%w", err)
		return
	}
	k.named(at, text)
	k.pointer(at, text)
}

// named notes a name that no request can have, or that is a typing error.
func (k *checker) named(at, text string) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case kind == "header" && !IsHeaderName(name):
		k.bad(at, "%q: %q is no name of a header: write it like header:Idempotency-Key, without blanks", text, name)
	case kind != "header" && strings.TrimSpace(name) != name:
		k.bad(at, "%q: a blank stands around %q: write it like %s:name", text, name, kind)
	}
}

// IsHeaderName reports whether an HTTP header can have this name: it is a token of RFC 9110.
func IsHeaderName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

func (k *checker) leaveOut(at, text string) {
	if _, err := oncehttp.ParseKeySource(text); err != nil || strings.HasPrefix(text, "header:") {
		k.bad(at, "leave_out %q: use json:/POINTER, form:NAME or query:NAME; headers never count", text)
		return
	}
	k.named(at, text)
	k.pointer(at, text)
}

func (k *checker) pointer(at, text string) {
	if pointer, ok := strings.CutPrefix(text, "json:"); ok {
		if err := fingerprint.CheckPointer(pointer); err != nil {
			k.bad(at, "%s: %w", text, err)
		}
	}
}

// word notes a word that is neither empty nor one of two.
func (k *checker) word(at, word, one, other string) {
	if word != "" && word != one && word != other {
		k.bad(at, "%s %q: use %s or %s", at[strings.LastIndex(at, ".")+1:], word, one, other)
	}
}
