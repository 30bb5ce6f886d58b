package oncehttp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onceward/onceward"
)

// replay writes a first answer again.
func (m *middleware) replay(w http.ResponseWriter, r *http.Request, d *onceward.Decision) {
	if d.Result.Codec != codec {
		m.replayForeign(w, r, d)
		return
	}
	body := d.Result.Data
	if !m.opts.Budget.take(int64(len(body))) {
		m.write(w, r, full())
		return
	}
	defer m.opts.Budget.give(int64(len(body)))

	// One text holds all values, and one slice all of their lines: a replay should cost little more than its bytes.
	var scratch [512]byte
	text := append(scratch[:0], d.Result.Meta...)
	metaEnd := len(text)
	if !d.ExpiresAt.IsZero() {
		text = appendDate(text, d.ExpiresAt)
	}
	expiresEnd := len(text)
	all := string(strconv.AppendInt(text, int64(len(body)), 10))
	var few [8]line
	status, lines, err := decodeMeta(all[:metaEnd], few[:0])
	if err != nil {
		m.problem(w, r, onceward.CodeCorruptRecord, 0, err.Error())
		return
	}
	h := w.Header()
	values := make([]string, 0, len(lines)+4)
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	set(HeaderStatus, "replayed")
	set(HeaderReplayed, "true")
	if expiresEnd > metaEnd {
		set(HeaderExpires, all[metaEnd:expiresEnd])
	}
	coding := find(lines, "Content-Encoding")
	accepted, said := r.Header["Accept-Encoding"]
	decode := said && !d.Result.Tombstone && coding != "" && !strings.EqualFold(coding, "identity") && !accepts(accepted, coding)
	kept := !d.Result.Tombstone
	size := int64(len(body))
	if decode {
		size, kept = m.decodedSize(coding, body)
	}
	otherOrigin := false
	if allow := find(lines, "Access-Control-Allow-Origin"); allow != "" && allow != "*" {
		otherOrigin = allow != r.Header.Get("Origin")
	}
	for i, l := range lines {
		switch {
		case otherOrigin && strings.HasPrefix(l.name, "Access-Control-"):
			continue // what stands around us may have spoken for this one
		case !kept && (strings.HasPrefix(l.name, "Content-") || l.name == "Etag"):
			continue
		case decode && (l.name == "Content-Encoding" || l.name == "Etag"):
			continue // the tag named the coded form
		case !l.set:
			h[l.name] = nil
		case i > 0 && lines[i-1].name == l.name:
			values = append(values, l.value)
			n := len(h[l.name]) + 1
			h[l.name] = values[len(values)-n : len(values) : len(values)]
		default:
			set(l.name, l.value)
		}
	}
	if !kept {
		m.tombstone(w, r, status)
		return
	}
	if !bodyAllowed(r.Method, status) {
		w.WriteHeader(status)
		return
	}
	if !decode {
		set("Content-Length", all[expiresEnd:])
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return
	}
	if find(lines, "Content-Type") == "" {
		h["Content-Type"] = nil // none was guessed for the coded form
	}
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(status)
	if zr, err := gzip.NewReader(bytes.NewReader(body)); err == nil { // it was read once already
		_, _ = io.Copy(w, zr)
	}
}

// replayForeign answers for a record that another front door finished, or a person: there is no answer of ours.
func (m *middleware) replayForeign(w http.ResponseWriter, r *http.Request, d *onceward.Decision) {
	h := w.Header()
	h.Set(HeaderStatus, "replayed")
	h.Set(HeaderReplayed, "true")
	setExpires(h, d.ExpiresAt)
	switch {
	case d.Kind == onceward.KindReplayFailure:
		m.problem(w, r, onceward.CodeDuplicate, 0, d.Failure) // the answer was no: asking again is no use
	case d.Result.Tombstone:
		m.tombstone(w, r, http.StatusOK)
	default:
		h.Set("Content-Type", "application/octet-stream")
		if json.Valid(d.Result.Data) {
			h.Set("Content-Type", "application/json")
		}
		h.Set("Content-Length", strconv.Itoa(len(d.Result.Data)))
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			_, _ = w.Write(d.Result.Data)
		}
	}
}

// tombstone answers with the first status, and says that the body was not kept.
func (m *middleware) tombstone(w http.ResponseWriter, r *http.Request, status int) {
	if !bodyAllowed(r.Method, status) {
		w.WriteHeader(status)
		return
	}
	p := NewProblem(onceward.CodeResultNotKept, 0, "")
	p.Status = status
	m.write(w, r, p)
}

// decodedSize returns the length of a body without a coding that the client of this replay can't read; ok is false
// when we can't undo it either.
func (m *middleware) decodedSize(coding string, body []byte) (size int64, ok bool) {
	if !strings.EqualFold(coding, "gzip") && !strings.EqualFold(coding, "x-gzip") {
		return 0, false
	}
	zr, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return 0, false
	}
	limit := int64(m.opts.MaxResult) * 64 // a bomb is not unpacked
	size, err = io.Copy(io.Discard, io.LimitReader(zr, limit+1))
	return size, err == nil && size <= limit
}

// accepts reports whether Accept-Encoding admits a coding (RFC 9110, 12.5.3). A client without that header admits any and
// is not asked: it gets the first bytes as they are.
func accepts(lines []string, coding string) bool {
	star := false
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.TrimSpace(name)
			q, has := strings.CutPrefix(strings.ToLower(strings.Trim(params, " \t")), "q=")
			zero := has && q != "" && q[0] == '0' && strings.Trim(q, "0.") == ""
			switch {
			case strings.EqualFold(name, coding):
				return !zero
			case name == "*":
				star = !zero
			}
		}
	}
	return star
}

func setExpires(h http.Header, t time.Time) {
	if !t.IsZero() {
		h.Set(HeaderExpires, date(t))
	}
}
