package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
)

// Hasher digests a request part by part. The order of the calls matters, and so do the tags that name the parts: two
// sums are equal when they were made of equal parts under equal tags in one order. The zero value is ready. A Hasher
// is for one goroutine and must not be copied.
//
//	h := fingerprint.New()
//	h.Text("method", r.Method)
//	h.JSON("body", body, nil)
//	sum := h.Sum()
type Hasher struct {
	_ noCopy
	s *scratch // taken at the first part, given back by Sum
}

// New returns a Hasher. It does not allocate where it stays in the function that calls it.
func New() *Hasher { return new(Hasher) }

// Kinds of parts. What is hashed is the domain, then for each part its kind, the length of its tag and the tag, and
// the content: self-delimiting for kinds that say so, otherwise behind its length. Lengths are unsigned varints.
const (
	domain = "onceward fingerprint 1\n"

	kindText  = 't'
	kindBytes = 'b'
	kindEmpty = 'e' // a body of no bytes; no content
	kindRaw   = 'r' // bytes that should have been JSON, a form or a query
	kindJSON  = 'j' // self-delimiting, see canonical.go
	kindForm  = 'f' // self-delimiting, see pairs.go
	kindQuery = 'q' // likewise
)

// Text adds a text, byte for byte.
func (h *Hasher) Text(tag, value string) {
	s := h.part(kindText, tag)
	s.buf = binary.AppendUvarint(s.buf, uint64(len(value)))
	s.buf = append(s.buf, value...)
	s.spill()
}

// Bytes adds a body, byte for byte.
func (h *Hasher) Bytes(tag string, body []byte) {
	if len(body) == 0 {
		h.part(kindEmpty, tag)
		return
	}
	h.part(kindBytes, tag).content(body)
}

// JSON adds a body by its JSON value, without what the pointers in leaveOut (RFC 6901) name: a member is left out with
// its name, an element leaves its place. A pointer that names nothing in this body, or is none (CheckPointer), changes
// nothing. A body that is not JSON of one meaning is added whole, byte for byte.
func (h *Hasher) JSON(tag string, body []byte, leaveOut []string) {
	if len(body) == 0 {
		h.part(kindEmpty, tag)
		return
	}
	s := h.take()
	start := len(s.buf)
	h.part(kindJSON, tag)
	if !s.canonical(body, leaveOut) {
		s.buf = s.buf[:start]
		h.part(kindRaw, tag).content(body)
		return
	}
	s.spill()
}

// Form adds a body of the type application/x-www-form-urlencoded by its pairs, without those named in leaveOut.
func (h *Hasher) Form(tag string, body []byte, leaveOut []string) {
	if len(body) == 0 {
		h.part(kindEmpty, tag)
		return
	}
	if !decodePairs(h.take(), body) {
		h.part(kindRaw, tag).content(body)
		return
	}
	h.pairs(kindForm, tag, leaveOut)
}

// Query adds the query of a URL, without its question mark, by its pairs, without those named in leaveOut.
func (h *Hasher) Query(tag, query string, leaveOut []string) {
	if !decodePairs(h.take(), query) {
		h.part(kindRaw, tag).content([]byte(query))
		return
	}
	h.pairs(kindQuery, tag, leaveOut)
}

// Sum returns the sum of the parts added since the last Sum, and begins anew. The sum of no parts is a sum too.
func (h *Hasher) Sum() Sum {
	s := h.take()
	h.s = nil
	sum := s.sum()
	s.release()
	return sum
}

func (h *Hasher) take() *scratch {
	if h.s == nil {
		h.s = pool.Get().(*scratch)
		h.s.buf = append(h.s.buf[:0], domain...)
	}
	return h.s
}

func (h *Hasher) part(kind byte, tag string) *scratch {
	s := h.take()
	s.buf = append(s.buf, kind)
	s.buf = binary.AppendUvarint(s.buf, uint64(len(tag)))
	s.buf = append(s.buf, tag...)
	return s
}

// scratch is the memory that a Hasher works in.
type scratch struct {
	buf      []byte    // what is still to be hashed
	digest   hash.Hash // what was spilled; made when first needed
	spilled  bool
	finished Sum // here, because the hash.Hash interface would move a local to the heap

	parser // of JSON
	pairs  []pair
}

const (
	spillAt = 4 << 10  // smaller requests are hashed in one go
	keepCap = 64 << 10 // larger memory is not pooled
)

var pool = sync.Pool{New: func() any { return &scratch{buf: make([]byte, 0, 1024)} }}

// content adds b behind its length, without copying what is large.
func (s *scratch) content(b []byte) {
	s.buf = binary.AppendUvarint(s.buf, uint64(len(b)))
	if len(b) < spillAt {
		s.buf = append(s.buf, b...)
		s.spill()
		return
	}
	s.flush()
	s.digest.Write(b)
}

func (s *scratch) spill() {
	if len(s.buf) >= spillAt {
		s.flush()
	}
}

func (s *scratch) flush() {
	if s.digest == nil {
		s.digest = sha256.New()
	}
	s.digest.Write(s.buf)
	s.buf = s.buf[:0]
	s.spilled = true
}

func (s *scratch) sum() Sum {
	if !s.spilled {
		var sum Sum
		sum[0] = Version
		d := sha256.Sum256(s.buf)
		copy(sum[1:], d[:])
		return sum
	}
	s.flush()
	s.finished[0] = Version
	s.digest.Sum(s.finished[:1])
	s.digest.Reset()
	s.spilled = false
	return s.finished
}

func (s *scratch) release() {
	if cap(s.buf) > keepCap || cap(s.spare) > keepCap || cap(s.members) > keepCap/32 || cap(s.pairs) > keepCap/32 {
		return
	}
	pool.Put(s)
}

// noCopy lets go vet find copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
