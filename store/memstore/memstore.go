// Package memstore keeps records in memory: for tests, and for a service of one process that may forget everything when
// it ends. It is the reference store: its every decision is a call of package state.
package memstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Options of a Store. Nil and the zero value are valid.
type Options struct {
	// MaxRecords bounds the records that claims make. At the limit expired records are dropped; when that does not
	// help, new keys are refused with driver.ErrStoreFull. A record is never evicted before its time. Zero: 1,000,000.
	MaxRecords int
	// Now is the store's clock. Nil: time.Now.
	Now func() time.Time
}

const shardCount = 256

// Store is a driver.Store, driver.Sweeper and driver.StepStore. Safe for concurrent use. The zero value is not usable.
//
// It keeps copies of the bytes that it is given. What it returns are those very copies, shared by all callers because
// a stored result never changes: read them, don't write to them.
type Store struct {
	id     driver.StoreID
	now    func() time.Time
	max    int64
	_      [64]byte // what follows is written by every first claim; what is above is read by every call
	count  atomic.Int64
	floor  atomic.Int64 // highest fence that was purged
	hand   atomic.Uint32
	_      [64]byte
	shards [shardCount]shard
}

// shard has a cache line of its own, so that neighbours don't wait for each other.
type shard struct {
	mu      sync.Mutex
	rows    map[driver.ID]*row
	peak    int     // most rows since the map was made
	soonest instant // nothing expires before; never: nothing does
	_       [32]byte
}

// New returns an empty store.
func New(opts *Options) *Store {
	s := &Store{now: time.Now, max: 1_000_000}
	if opts != nil {
		if opts.Now != nil {
			s.now = opts.Now
		}
		if opts.MaxRecords > 0 {
			s.max = int64(opts.MaxRecords)
		}
	}
	_, _ = rand.Read(s.id[:]) // never fails, by its contract
	for i := range s.shards {
		s.shards[i].rows, s.shards[i].soonest = map[driver.ID]*row{}, never
	}
	return s
}

// clock is the store's clock, to the microsecond, as the SQL stores have it.
func (s *Store) clock() time.Time {
	now := s.now()
	return time.Unix(now.Unix(), int64(now.Nanosecond()/1000*1000)).UTC()
}

// shard picks by the last byte of the ID, which is a digest in every form of it.
func (s *Store) shard(id *driver.ID) *shard { return &s.shards[id[len(id)-1]] }

// Claim implements driver.Store.
func (s *Store) Claim(ctx context.Context, c driver.Claim) (reply driver.Claimed, err error) {
	if err := c.Check(); err != nil {
		return reply, err
	}
	if err := ctx.Err(); err != nil {
		return reply, err
	}
	c.Request = bytes.Clone(c.Request)
	for !s.claim(&c, &reply) {
		if s.dropExpired(s.shard(&c.ID)) == 0 && s.count.Load() >= s.max { // another call may have made the room
			return reply, driver.ErrStoreFull
		}
	}
	return reply, nil
}

// claim answers c, unless that takes one more record and the store is full. The reply, which is zero, is made in place:
// it is large.
func (s *Store) claim(c *driver.Claim, reply *driver.Claimed) bool {
	sh := s.shard(&c.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	kept, cur := sh.read(&c.ID, &reply.Record)
	if kept == nil && !s.reserve() {
		return false
	}
	var w state.Write
	reply.Now, reply.Store = s.clock(), s.id
	reply.Record, reply.Verdict, reply.Takeover, w = state.Claim(cur, c, reply.Now, s.floor.Load())
	sh.write(kept, &reply.Record, w)
	return true
}

// reserve takes the place of one more record, unless the store is full.
func (s *Store) reserve() bool {
	for n := s.count.Load(); n < s.max; n = s.count.Load() {
		if s.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// read returns the row of an ID, with its record in r, or nothing.
func (sh *shard) read(id *driver.ID, r *driver.Record) (*row, *driver.Record) {
	kept := sh.rows[*id]
	if kept == nil {
		return nil, nil
	}
	kept.tell(id, r)
	return kept, r
}

// write applies w: it keeps r in its row.
func (sh *shard) write(kept *row, r *driver.Record, w state.Write) {
	switch w {
	case state.Keep:
		return
	case state.Insert:
		kept = new(row)
		sh.rows[r.ID] = kept
		sh.peak = max(sh.peak, len(sh.rows))
	}
	kept.set(r)
	sh.expires(kept.expiresAt)
}

// expires notes that a row expires at a time, so that purges need not look before.
func (sh *shard) expires(at instant) {
	if at != never && (sh.soonest == never || at < sh.soonest) {
		sh.soonest = at
	}
}

// Renew implements driver.Store.
func (s *Store) Renew(ctx context.Context, rn driver.Renewal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sh := s.shard(&rn.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var r driver.Record
	kept, cur := sh.read(&rn.ID, &r)
	next, ok := state.Renew(cur, &rn, s.clock())
	if !ok {
		return driver.ErrLeaseLost
	}
	sh.write(kept, &next, state.Update)
	return nil
}

// Progress implements driver.StepStore.
func (s *Store) Progress(ctx context.Context, p driver.Progress) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.Steps = cloneSteps(p.Steps)
	sh := s.shard(&p.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var r driver.Record
	kept, cur := sh.read(&p.ID, &r)
	next, ok := state.Progress(cur, &p, s.clock())
	if !ok {
		return driver.ErrLeaseLost
	}
	sh.write(kept, &next, state.Update)
	return nil
}

// Finish implements driver.Store.
func (s *Store) Finish(ctx context.Context, f driver.Finish) (reply driver.Finished, err error) {
	if err := f.Check(); err != nil {
		return reply, err
	}
	if err := ctx.Err(); err != nil {
		return reply, err
	}
	f.Claim.Request = bytes.Clone(f.Claim.Request)
	f.Outcome.Result = clone(f.Outcome.Result)
	sh := s.shard(&f.Claim.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var w state.Write
	kept, cur := sh.read(&f.Claim.ID, &reply.Record)
	reply.Now = s.clock()
	reply.Record, reply.Applied, w = state.Finish(cur, &f, reply.Now)
	sh.write(kept, &reply.Record, w)
	if w == state.Insert { // the work is done: it is kept even above the limit
		s.count.Add(1)
	}
	return reply, nil
}

// Settle implements driver.Store.
func (s *Store) Settle(ctx context.Context, st driver.Settlement) (reply driver.Settled, err error) {
	if err := st.Check(); err != nil {
		return reply, err
	}
	if err := ctx.Err(); err != nil {
		return reply, err
	}
	st.Outcome.Result, st.Steps = clone(st.Outcome.Result), cloneSteps(st.Steps)
	sh := s.shard(&st.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	kept, cur := sh.read(&st.ID, &reply.Record)
	if kept == nil {
		return reply, driver.ErrNotFound
	}
	var w state.Write
	reply.Now = s.clock()
	reply.Record, reply.Applied, w = state.Settle(cur, &st, reply.Now)
	sh.write(kept, &reply.Record, w)
	return reply, nil
}

// Get implements driver.Store.
func (s *Store) Get(ctx context.Context, id driver.ID) (snap driver.Snapshot, err error) {
	if err := ctx.Err(); err != nil {
		return snap, err
	}
	sh := s.shard(&id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if kept, _ := sh.read(&id, &snap.Record); kept == nil {
		return snap, driver.ErrNotFound
	}
	snap.Now = s.clock()
	return snap, nil
}

func cloneSteps(all []driver.Step) []driver.Step {
	all = slices.Clone(all)
	for i := range all {
		all[i].Result = clone(all[i].Result)
	}
	return all
}

// clone copies a result. Nil stays nil: it is another result than one of no bytes.
func clone(r driver.Result) driver.Result {
	r.Data, r.Meta = bytes.Clone(r.Data), bytes.Clone(r.Meta)
	return r
}
