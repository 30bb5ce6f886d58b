package memstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Scan implements driver.Sweeper, shard by shard in the order of the IDs' last byte, then of the IDs.
func (s *Store) Scan(ctx context.Context, q driver.Scan) (driver.Page, error) {
	from, after := 0, driver.ID{}
	if q.After != "" {
		b, err := hex.DecodeString(q.After)
		if err != nil || len(b) != len(after) {
			return driver.Page{}, fmt.Errorf("memstore: Scan.After is not a Next of an earlier page")
		}
		after = driver.ID(b)
		from = int(after[len(after)-1])
	}
	var page driver.Page
	looked := 0
	for i := from; i < shardCount; i++ {
		if err := ctx.Err(); err != nil {
			return driver.Page{}, err
		}
		now := s.clock()
		for _, r := range s.shards[i].sorted() {
			if q.After != "" && i == from && bytes.Compare(r.ID[:], after[:]) <= 0 {
				continue
			}
			if looked == max(q.Limit, 1) {
				return page, nil
			}
			looked++
			page.Next = hex.EncodeToString(r.ID[:])
			if state.Matches(q.Which, &r, now) {
				page.Snapshots = append(page.Snapshots, driver.Snapshot{Record: r, Now: now})
			}
		}
	}
	page.Next = ""
	return page, nil
}

// sorted returns the shard's records in the order of their IDs, without result bytes.
func (sh *shard) sorted() []driver.Record {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	list := make([]driver.Record, 0, len(sh.records))
	for _, r := range sh.records {
		c := *r
		c.Result.Data, c.Request = nil, nil
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b driver.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return list
}

// Purge drops up to limit expired records and returns how many.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	n := 0
	for i := range s.shards {
		if err := ctx.Err(); err != nil || n >= limit {
			return n, err
		}
		n += s.purge(&s.shards[i], limit-n)
	}
	return n, nil
}

// dropExpired makes room, a shard at a time, going round so that no shard is always first.
func (s *Store) dropExpired() int {
	for range shardCount {
		if n := s.purge(&s.shards[s.hand.Add(1)%shardCount], 1<<30); n > 0 {
			return n
		}
	}
	return 0
}

func (s *Store) purge(sh *shard, limit int) int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now, n := s.clock(), 0
	for id, r := range sh.records {
		if n == limit {
			break
		}
		if state.Expired(r, now) {
			for old := s.floor.Load(); r.Fence > old && !s.floor.CompareAndSwap(old, r.Fence); old = s.floor.Load() {
			}
			delete(sh.records, id)
			n++
		}
	}
	s.count.Add(int64(-n))
	if sh.peak > 64 && len(sh.records) < sh.peak/4 { // a map never shrinks by itself
		fresh := make(map[driver.ID]*driver.Record, len(sh.records))
		for id, r := range sh.records {
			fresh[id] = r
		}
		sh.records, sh.peak = fresh, len(fresh)
	}
	return n
}

// Shift moves a record's times back by d, as if d had passed since. It is for tests, which never sleep.
func (s *Store) Shift(id driver.ID, d time.Duration) {
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r := sh.records[id]; r != nil {
		for _, t := range []*time.Time{&r.LeaseUntil, &r.DeadlineAt, &r.RepeatableUntil, &r.CreatedAt, &r.UpdatedAt, &r.CompletedAt, &r.ExpiresAt} {
			if !t.IsZero() {
				*t = t.Add(-d)
			}
		}
	}
}

// Put writes a record as it is. It is for tests, which need records that no call leaves behind.
func (s *Store) Put(r driver.Record) {
	sh := s.shard(r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.records[r.ID] == nil {
		s.count.Add(1)
	}
	sh.records[r.ID] = &r
}
