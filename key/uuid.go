package key

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// New returns a fresh random key for a client that has no business id to compose one from: a UUIDv7 (RFC 9562) in
// lower case. Keys of one process grow strictly, even within a millisecond or when the clock steps back, so that
// records are inserted in order; 62 bits of each are random and can't be guessed from another.
//
// Make it once per intent and keep it for every retry: a new key for a retry is a new intent. Safe for concurrent use.
func New() Key { return process.next(time.Now()) }

// process orders the keys of this process.
var process generator

// generator makes UUIDs in order. The 12 bits behind the time are a counter that starts anew at random in the lower
// half of its range for each millisecond; when it is used up, the time goes ahead of the clock by one.
type generator struct {
	mu    sync.Mutex
	ms    int64
	count uint16
}

func (g *generator) next(now time.Time) Key {
	var id [16]byte
	rand.Read(id[6:]) // never fails: the runtime stops the program instead

	g.mu.Lock()
	if ms := now.UnixMilli(); ms > g.ms {
		g.ms, g.count = ms, binary.BigEndian.Uint16(id[6:])&0x7FF
	} else if g.count < 0xFFF {
		g.count++
	} else {
		g.ms, g.count = g.ms+1, binary.BigEndian.Uint16(id[6:])&0x7FF
	}
	ms, count := g.ms, g.count
	g.mu.Unlock()

	binary.BigEndian.PutUint32(id[:], uint32(ms>>16))
	binary.BigEndian.PutUint16(id[4:], uint16(ms))
	binary.BigEndian.PutUint16(id[6:], 0x7000|count)
	id[8] = 0x80 | id[8]&0x3F

	var text [36]byte
	for i, from, to := 0, 0, 0; i < 5; i++ {
		n := [...]int{4, 2, 2, 2, 6}[i]
		hex.Encode(text[to:], id[from:from+n])
		from, to = from+n, to+2*n
		if i < 4 {
			text[to] = '-'
			to++
		}
	}
	return Key{string(text[:])}
}
