package oncehttp

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// kept are the headers that belong to an answer's content and are replayed. Everything else is not, and above all not
// what belongs to one client or one moment: Set-Cookie, authentication, hop-by-hop headers, Date, rate limits.
var kept = map[string]bool{
	"Content-Type": true, "Content-Encoding": true, "Content-Language": true, "Content-Location": true,
	"Content-Disposition": true, "Content-Range": true,
	"Location": true, "Link": true, "Etag": true, "Last-Modified": true, "Cache-Control": true, "Expires": true,
	"Vary": true, "Access-Control-Allow-Origin": true, "Access-Control-Allow-Credentials": true,
	"Access-Control-Expose-Headers": true,
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// encodeMeta keeps a status and the headers that may be replayed: the status, then a line each, sorted by name. A name
// without a colon is one that the handler set to nothing, which keeps net/http from guessing a type.
func encodeMeta(status int, h http.Header) []byte {
	var names [16]string
	list := names[:0]
	for name := range h {
		if kept[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	meta := make([]byte, 0, 96)
	meta = strconv.AppendInt(meta, int64(status), 10)
	for _, name := range list {
		values := h[name]
		if len(values) == 0 {
			meta = append(append(meta, '\n'), name...)
		}
		for _, v := range values {
			meta = append(append(append(meta, '\n'), name...), ':')
			if strings.ContainsAny(v, "\r\n") {
				v = lineBreaks.Replace(v)
			}
			meta = append(meta, v...)
		}
	}
	return meta
}

var errMeta = errors.New("oncehttp: the stored status and headers are damaged")

// decodeMeta puts the headers into h and returns the status.
func decodeMeta(meta []byte, h http.Header) (status int, err error) {
	text := string(meta)
	line, rest, more := strings.Cut(text, "\n")
	if status, err = strconv.Atoi(line); err != nil || status < 200 || status > 999 {
		return 0, errMeta
	}
	for more {
		line, rest, more = strings.Cut(rest, "\n")
		name, value, has := strings.Cut(line, ":")
		if !kept[name] {
			return 0, errMeta
		}
		if has {
			h[name] = append(h[name], value)
		} else {
			h[name] = nil
		}
	}
	return status, nil
}
