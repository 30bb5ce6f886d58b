package oncehttp

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// kept reports whether a header belongs to an answer's content and is replayed. Everything else is not, and above all not
// what belongs to one client or one moment: Set-Cookie, authentication, hop-by-hop headers, Date, rate limits.
func kept(name string) bool {
	switch name {
	case "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Disposition", "Content-Range",
		"Location", "Link", "Etag", "Last-Modified", "Cache-Control", "Expires", "Vary",
		"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers":
		return true
	}
	return false
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// maxMeta bounds what is kept of an answer's headers. An answer with more is not replayed: duplicates are told that the
// work is done.
const maxMeta = 32 << 10

// field is one header with its lines. No lines means one that was set to nothing, which keeps net/http from guessing a
// type.
type field struct {
	name   string
	values []string
}

// encodeMeta keeps a status and the headers that may be replayed: the status, then a line each, sorted by name, as it
// leaves fields. A name without a colon is one that was set to nothing. What stands in outer is left out: it was there
// before the handler ran, and will be there before a replay.
func encodeMeta(meta []byte, status int, fields, outer []field) []byte {
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	meta = strconv.AppendInt(meta, int64(status), 10)
	for _, f := range fields {
		same := func(o field) bool { return o.name == f.name && slices.Equal(o.values, f.values) }
		name := http.CanonicalHeaderKey(f.name)
		if !kept(name) || slices.ContainsFunc(outer, same) {
			continue
		}
		if len(f.values) == 0 {
			meta = append(append(meta, '\n'), name...)
		}
		for _, v := range f.values {
			meta = append(append(append(meta, '\n'), name...), ':')
			if strings.ContainsAny(v, "\r\n") {
				v = lineBreaks.Replace(v)
			}
			meta = append(meta, v...)
		}
	}
	return meta
}

var errMeta = errors.New("the stored status and headers are damaged")

// line is one line of a field; set is false for a field that was set to nothing.
type line struct {
	name, value string
	set         bool
}

// decodeMeta appends the stored headers to lines and returns the status.
func decodeMeta(meta string, lines []line) (status int, _ []line, err error) {
	text, rest, more := strings.Cut(meta, "\n")
	if status, err = strconv.Atoi(text); err != nil || status < 200 || status > 999 || len(text) != 3 {
		return 0, nil, errMeta
	}
	for more {
		text, rest, more = strings.Cut(rest, "\n")
		l := line{}
		l.name, l.value, l.set = strings.Cut(text, ":")
		if !kept(l.name) {
			return 0, nil, errMeta
		}
		lines = append(lines, l)
	}
	return status, lines, nil
}

func find(lines []line, name string) string {
	for _, l := range lines {
		if l.name == name {
			return l.value
		}
	}
	return ""
}
