package onceward

import (
	"context"
	"sync"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
)

// A flight is one key being worked on in this process. It is there from the claim until the attempt ends, so that
// duplicates in the same process cost no store traffic; nothing is remembered after it.
//
//	claiming ──▶ running ──▶ over
//	    └────────────────────▲
//
// While another process has the key, the flight is running without an attempt and its leader asks for all who wait.
type flight struct {
	id    driver.ID
	sum   fingerprint.Sum
	phase phase
	alone bool // nobody but its leader has it

	claimed chan struct{} // closed when claiming ends; made by the first who waits
	over    chan struct{} // closed at the end; made by the first who waits
	waiting int           // of the key's 64

	attempt *Attempt  // running here
	until   time.Time // running elsewhere: when to ask again, as last heard
	answer  Decision  // over: what followers get, when share
	err     error
	share   bool
}

type phase uint8

const (
	claiming phase = iota
	running
	over
)

const flightShards = 64

type flights struct{ shards [flightShards]flightShard }

type flightShard struct {
	sync.Mutex
	byID  map[driver.ID]*flight
	spare *flight // for the next key, or nil
}

func (fs *flights) init() {
	for i := range fs.shards {
		fs.shards[i].byID = map[driver.ID]*flight{}
	}
}

// lock returns the shard of id, locked.
func (fs *flights) lock(id driver.ID) *flightShard {
	s := &fs.shards[id[len(id)-1]%flightShards]
	s.Lock()
	return s
}

// board returns the flight of id and whether the caller leads it: made it, and must land it.
func (fs *flights) board(id driver.ID, sum fingerprint.Sum) (f *flight, leads bool) {
	s := fs.lock(id)
	defer s.Unlock()
	if f = s.byID[id]; f != nil {
		f.alone = false
		return f, false
	}
	if f = s.spare; f == nil {
		f = new(flight)
	}
	s.spare = nil
	*f = flight{id: id, sum: sum, alone: true}
	s.byID[id] = f
	return f, true
}

// takeOff moves the flight to running here.
func (fs *flights) takeOff(f *flight, a *Attempt) {
	defer fs.lock(f.id).Unlock()
	if f.phase == over {
		return // the claim was lost before it was known here
	}
	if f.phase == running {
		f.waiting-- // its leader waited for another process
	}
	f.run()
	f.attempt = a
}

// elsewhere moves the flight to running in another process. Its leader is the first who waits.
func (fs *flights) elsewhere(f *flight, until time.Time) {
	defer fs.lock(f.id).Unlock()
	if f.phase == claiming {
		f.waiting++
	}
	f.run()
	f.until = until
}

// run ends claiming. Callers hold the lock.
func (f *flight) run() {
	if f.phase == claiming && f.claimed != nil {
		close(f.claimed)
	}
	f.phase = running
}

// land ends the flight. With share, followers of the same fingerprint get answer and err; otherwise they begin anew.
// Landing twice is harmless: the first holds.
func (fs *flights) land(f *flight, answer Decision, err error, share bool) {
	s := fs.lock(f.id)
	defer s.Unlock()
	if f.phase == over {
		return
	}
	if f.phase == claiming && f.claimed != nil {
		close(f.claimed)
	}
	f.phase, f.attempt = over, nil
	f.answer, f.err, f.share = answer, err, share
	if f.over != nil {
		close(f.over)
	}
	if s.byID[f.id] == f {
		delete(s.byID, f.id)
	}
}

// retire keeps a landed flight for another key, when nobody else can have it: a replay then makes none.
func (fs *flights) retire(f *flight) {
	s := fs.lock(f.id)
	defer s.Unlock()
	if f.alone {
		*f = flight{}
		s.spare = f
	}
}

// look is what a follower sees of a flight at one moment.
type look struct {
	phase   phase
	sameSum bool
	hint    time.Duration // running: when to come back, as far as this process knows
	changed chan struct{} // claiming: closed when that ends; running: closed at the end, with wait
	answer  Decision
	err     error
	share   bool
	full    bool // running, with wait: the key has its 64 waiters
}

const maxWaitersPerKey = 64

// look returns the flight's state and, when the follower wants to wait, a channel. A follower that waits on a
// running flight is counted, and must call away.
func (fs *flights) look(f *flight, sum fingerprint.Sum, wait bool) look {
	defer fs.lock(f.id).Unlock()
	l := look{phase: f.phase, sameSum: f.sum == sum, answer: f.answer, err: f.err, share: f.share}
	switch f.phase {
	case claiming:
		if f.claimed == nil {
			f.claimed = make(chan struct{})
		}
		l.changed = f.claimed
	case running:
		l.hint = retryHint(time.Until(f.until), time.Until(f.until))
		if a := f.attempt; a != nil {
			l.hint = retryHint(time.Since(a.begun), time.Until(a.validUntil()))
		}
		if wait && l.sameSum {
			if l.full = f.waiting >= maxWaitersPerKey; l.full {
				break
			}
			f.waiting++
			if f.over == nil {
				f.over = make(chan struct{})
			}
			l.changed = f.over
		}
	}
	return l
}

func (fs *flights) away(f *flight) {
	defer fs.lock(f.id).Unlock()
	f.waiting--
}

// abandon stops every running attempt of the process: used when the guard gave up waiting for them.
func (fs *flights) abandon() {
	for i := range fs.shards {
		s := &fs.shards[i]
		var attempts []*Attempt
		s.Lock()
		for _, f := range s.byID {
			if f.attempt != nil {
				attempts = append(attempts, f.attempt)
			}
		}
		s.Unlock()
		for _, a := range attempts {
			a.lose(ErrClosed)
		}
	}
}

// waiters bounds how many callers of the process wait.
type waiters struct {
	mu sync.Mutex
	n  int
}

const maxWaiters = 1024

func (w *waiters) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n >= maxWaiters {
		return false
	}
	w.n++
	return true
}

func (w *waiters) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
}

// pause waits for a duration, for changed to close, or for ctx to end.
func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
