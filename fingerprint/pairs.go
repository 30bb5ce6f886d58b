package fingerprint

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Pairs adds a query string or a URL-encoded form: the order of names does not matter, the order of the values of one
// name does. Names in leaveOut are left out. What can't be decoded is added as bytes.
func (h *Hasher) Pairs(name, encoded string, leaveOut []string) {
	if encoded == "" {
		h.part(kindPairs, name, nil)
		return
	}
	type pair struct{ name, value string }
	var pairs []pair
	for part := range strings.SplitSeq(encoded, "&") {
		if part == "" {
			continue
		}
		rawName, rawValue, has := strings.Cut(part, "=")
		n, err1 := url.QueryUnescape(rawName)
		v, err2 := url.QueryUnescape(rawValue)
		if err1 != nil || err2 != nil || strings.Contains(part, ";") {
			h.Bytes(name, []byte(encoded))
			return
		}
		if has {
			v = "=" + v
		}
		if !slices.Contains(leaveOut, n) {
			pairs = append(pairs, pair{n, v})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	var form []byte
	for _, p := range pairs {
		form = strconv.AppendInt(form, int64(len(p.name)), 10)
		form = append(append(form, ':'), p.name...)
		form = strconv.AppendInt(form, int64(len(p.value)), 10)
		form = append(append(form, ':'), p.value...)
	}
	h.part(kindPairs, name, form)
}
