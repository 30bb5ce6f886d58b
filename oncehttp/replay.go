package oncehttp

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onceward/onceward"
)

// replay writes a first answer again.
func (m *middleware) replay(w http.ResponseWriter, r *http.Request, d *onceward.Decision) {
	h := w.Header()
	if d.Result.Meta == nil && !d.Result.Tombstone {
		m.settled(w, r, d)
		return
	}
	status, err := decodeMeta(d.Result.Meta, h)
	if err != nil {
		clear(h)
		m.problem(w, r, onceward.CodeCorruptRecord, 0, err.Error())
		return
	}
	h.Set(HeaderStatus, "replayed")
	h.Set(HeaderReplayed, "true")
	setExpires(h, d.ExpiresAt)
	keepOrigin(h, r)
	body := d.Result.Data
	if d.Result.Tombstone {
		m.tombstone(w, r, status)
		return
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !accepts(r.Header.Values("Accept-Encoding"), coding) {
		plain, ok := m.decoded(coding, body)
		if !ok {
			m.tombstone(w, r, status)
			return
		}
		body = plain
		h.Del("Content-Encoding")
		h.Del("Etag") // it named the coded form
	}
	if bodyAllowed(r.Method, status) {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if bodyAllowed(r.Method, status) {
		_, _ = w.Write(body)
	}
}

// settled answers with what a person said of an unknown outcome, or what another front door recorded: there is a result
// or a text, and no answer of ours.
func (m *middleware) settled(w http.ResponseWriter, r *http.Request, d *onceward.Decision) {
	if d.Kind == onceward.KindReplayFailure {
		m.problem(w, r, onceward.CodeDuplicate, 0, d.Failure)
		return
	}
	h := w.Header()
	h.Set(HeaderStatus, "replayed")
	h.Set(HeaderReplayed, "true")
	setExpires(h, d.ExpiresAt)
	if d.Result.Codec == (onceward.JSON{}).Name() {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Content-Length", strconv.Itoa(len(d.Result.Data)))
	w.WriteHeader(http.StatusOK)
	if bodyAllowed(r.Method, http.StatusOK) {
		_, _ = w.Write(d.Result.Data)
	}
}

// tombstone answers with the first status and headers, and says that the body was not kept.
func (m *middleware) tombstone(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	for name := range h {
		if strings.HasPrefix(name, "Content-") || name == "Etag" {
			delete(h, name)
		}
	}
	if !bodyAllowed(r.Method, status) {
		w.WriteHeader(status)
		return
	}
	p := NewProblem(onceward.CodeResultNotKept, 0, "")
	p.Status = status
	p.Write(w)
}

// decoded undoes a coding that the client of this replay can't read.
func (m *middleware) decoded(coding string, body []byte) ([]byte, bool) {
	if coding != "gzip" && coding != "x-gzip" {
		return nil, false
	}
	zr, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, false
	}
	limit := int64(m.opts.MaxResult) * 64 // a bomb is not unpacked
	plain, err := io.ReadAll(io.LimitReader(zr, limit+1))
	return plain, err == nil && int64(len(plain)) <= limit
}

// accepts reports whether Accept-Encoding admits a coding (RFC 9110, 12.5.3). Without the header we answer as the first
// time only for identity: a client that says nothing may not know the coding.
func accepts(lines []string, coding string) bool {
	star := false
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			q := strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			zero := q != "" && strings.Trim(q, "0.") == "" && strings.HasPrefix(q, "0")
			switch name {
			case strings.ToLower(coding):
				return !zero
			case "*":
				star = !zero
			}
		}
	}
	return star
}

// keepOrigin drops CORS headers that were for another origin than this request's.
func keepOrigin(h http.Header, r *http.Request) {
	if allow := h.Get("Access-Control-Allow-Origin"); allow != "" && allow != "*" && allow != r.Header.Get("Origin") {
		h.Del("Access-Control-Allow-Origin")
		h.Del("Access-Control-Allow-Credentials")
	}
}

func setExpires(h http.Header, t time.Time) {
	if !t.IsZero() {
		h.Set(HeaderExpires, t.UTC().Format(http.TimeFormat))
	}
}
