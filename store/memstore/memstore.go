// Package memstore keeps records in memory: for tests, and for a service of one process that may forget everything when
// it ends. It is the reference store: its every decision is a call of package state.
package memstore

import (
	"bytes"
	"context"
	"crypto/rand"
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

// Store is a driver.Store and driver.Sweeper. Safe for concurrent use. The zero value is not usable.
//
// It keeps copies of the bytes that it is given. What it returns are those very copies, shared by all callers because
// a stored result never changes: read them, don't write to them.
type Store struct {
	id     driver.StoreID
	now    func() time.Time
	max    int64
	count  atomic.Int64
	floor  atomic.Int64 // highest fence that was purged
	hand   atomic.Uint32
	shards [shardCount]shard
}

type shard struct {
	mu      sync.Mutex
	records map[driver.ID]*driver.Record
	peak    int       // most records since the map was made
	soonest time.Time // nothing expires before; zero: nothing does
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
		s.shards[i].records = map[driver.ID]*driver.Record{}
	}
	return s
}

// clock is the store's clock, to the microsecond, as the SQL stores have it.
func (s *Store) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// shard picks by the last byte of the ID, which is a digest in every form of it.
func (s *Store) shard(id driver.ID) *shard { return &s.shards[id[len(id)-1]] }

// Claim implements driver.Store.
func (s *Store) Claim(ctx context.Context, c driver.Claim) (driver.Claimed, error) {
	if err := c.Check(); err != nil {
		return driver.Claimed{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Claimed{}, err
	}
	c.Request = bytes.Clone(c.Request)
	for {
		reply, full := s.claim(&c)
		if !full {
			return reply, nil
		}
		if s.dropExpired(s.shard(c.ID)) == 0 && s.count.Load() >= s.max { // another call may have made the room
			return driver.Claimed{}, driver.ErrStoreFull
		}
	}
}

func (s *Store) claim(c *driver.Claim) (reply driver.Claimed, full bool) {
	sh := s.shard(c.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.clock()
	cur := sh.records[c.ID]
	if cur == nil && !s.reserve() {
		return reply, true
	}
	reply.Now, reply.Store = now, s.id
	var w state.Write
	reply.Record, reply.Verdict, reply.Takeover, w = state.Claim(cur, c, now, s.floor.Load())
	sh.write(cur, &reply.Record, w)
	return reply, false
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

// write applies w. The record that is stored is the store's own.
func (sh *shard) write(cur, next *driver.Record, w state.Write) {
	switch w {
	case state.Keep:
		return
	case state.Insert:
		r := *next
		sh.records[r.ID] = &r
		sh.peak = max(sh.peak, len(sh.records))
	case state.Update:
		*cur = *next
	}
	sh.expires(next.ExpiresAt)
}

// expires notes that a record expires at a time, so that purges need not look before.
func (sh *shard) expires(at time.Time) {
	if !at.IsZero() && (sh.soonest.IsZero() || at.Before(sh.soonest)) {
		sh.soonest = at
	}
}

// Renew implements driver.Store.
func (s *Store) Renew(ctx context.Context, rn driver.Renewal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sh := s.shard(rn.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	cur := sh.records[rn.ID]
	next, ok := state.Renew(cur, &rn, s.clock())
	if !ok {
		return driver.ErrLeaseLost
	}
	*cur = next
	return nil
}

// Finish implements driver.Store.
func (s *Store) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	if err := f.Check(); err != nil {
		return driver.Finished{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Finished{}, err
	}
	f.Claim.Request = bytes.Clone(f.Claim.Request)
	f.Outcome.Result = clone(f.Outcome.Result)
	sh := s.shard(f.Claim.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	reply := driver.Finished{Now: s.clock()}
	cur := sh.records[f.Claim.ID]
	var w state.Write
	reply.Record, reply.Applied, w = state.Finish(cur, &f, reply.Now)
	sh.write(cur, &reply.Record, w)
	if w == state.Insert { // the work is done: it is kept even above the limit
		s.count.Add(1)
	}
	return reply, nil
}

// Settle implements driver.Store.
func (s *Store) Settle(ctx context.Context, st driver.Settlement) (driver.Settled, error) {
	if err := st.Check(); err != nil {
		return driver.Settled{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Settled{}, err
	}
	st.Outcome.Result = clone(st.Outcome.Result)
	sh := s.shard(st.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	cur := sh.records[st.ID]
	if cur == nil {
		return driver.Settled{}, driver.ErrNotFound
	}
	reply := driver.Settled{Now: s.clock()}
	var w state.Write
	reply.Record, reply.Applied, w = state.Settle(cur, &st, reply.Now)
	sh.write(cur, &reply.Record, w)
	return reply, nil
}

// Get implements driver.Store.
func (s *Store) Get(ctx context.Context, id driver.ID) (driver.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return driver.Snapshot{}, err
	}
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	cur := sh.records[id]
	if cur == nil {
		return driver.Snapshot{}, driver.ErrNotFound
	}
	return driver.Snapshot{Record: *cur, Now: s.clock()}, nil
}

// clone copies a result. Nil stays nil: it is another result than one of no bytes.
func clone(r driver.Result) driver.Result {
	r.Data, r.Meta = bytes.Clone(r.Data), bytes.Clone(r.Meta)
	return r
}
