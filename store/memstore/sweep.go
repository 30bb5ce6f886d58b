package memstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
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
	left := max(q.Limit, 1)
	for i := from; i < shardCount; i++ {
		if err := ctx.Err(); err != nil {
			return driver.Page{}, err
		}
		now := s.clock()
		records := s.shards[i].page(after, left)
		page.Seen += len(records)
		for _, r := range records {
			if state.Matches(q.Which, &r, now) {
				page.Snapshots = append(page.Snapshots, driver.Snapshot{Record: r, Now: now})
			}
		}
		if len(records) > 0 {
			page.Next = records[len(records)-1].ID.String()
		}
		after = driver.ID{} // the next shard from its start
		if left -= len(records); left == 0 {
			return page, nil
		}
	}
	page.Next = ""
	return page, nil
}

// page returns the first n of the shard's records behind after in the order of their IDs, without the bytes of result
// and request.
func (sh *shard) page(after driver.ID, n int) []driver.Record {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	ids := make([]driver.ID, 0, len(sh.rows))
	for id := range sh.rows {
		if bytes.Compare(id[:], after[:]) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b driver.ID) int { return bytes.Compare(a[:], b[:]) })
	ids = ids[:min(n, len(ids))]
	list := make([]driver.Record, 0, len(ids))
	for _, id := range ids {
		var r driver.Record
		sh.rows[id].tell(&id, &r)
		r.Result.Data, r.Request = nil, nil
		list = append(list, r)
	}
	return list
}

// Purge implements driver.Purger.
func (s *Store) Purge(ctx context.Context, p driver.Purge) (n int, err error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	now := s.clock()
	for i := range p.IDs {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if s.drop(&p.IDs[i], p.Floor, now) {
			n++
		}
	}
	return n, nil
}

// drop drops a record that has expired and whose fence is no higher than floor.
func (s *Store) drop(id *driver.ID, floor int64, now time.Time) bool {
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	kept := sh.rows[*id]
	if kept == nil || kept.fence > floor || !kept.expired(now) {
		return false
	}
	s.raise(kept.fence)
	delete(sh.rows, *id)
	s.count.Add(-1)
	sh.shrink()
	return true
}

// dropExpired makes room: in the shard that needs it, else in the first of the others that has any, going round so that
// no shard is always first.
func (s *Store) dropExpired(own *shard) int {
	n := s.purge(own)
	for i := 0; n == 0 && i < shardCount; i++ {
		n = s.purge(&s.shards[s.hand.Add(1)%shardCount])
	}
	return n
}

func (s *Store) purge(sh *shard) (n int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.clock()
	if sh.soonest == never || instantOf(now) < sh.soonest {
		return 0 // a full store asks before each refusal: it must not cost a walk
	}
	sh.soonest = never
	for id, kept := range sh.rows {
		if !kept.expired(now) {
			sh.expires(kept.expiresAt)
			continue
		}
		s.raise(kept.fence)
		delete(sh.rows, id)
		n++
	}
	s.count.Add(int64(-n))
	sh.shrink()
	return n
}

// shrink gives memory back: a map never does so by itself.
func (sh *shard) shrink() {
	if sh.peak > 64 && len(sh.rows) < sh.peak/4 || sh.peak > 8 && len(sh.rows) == 0 {
		fresh := make(map[driver.ID]*row, len(sh.rows))
		maps.Copy(fresh, sh.rows)
		sh.rows, sh.peak = fresh, len(fresh)
	}
}

// raise lifts the floor to at least fence.
func (s *Store) raise(fence int64) {
	for old := s.floor.Load(); fence > old && !s.floor.CompareAndSwap(old, fence); old = s.floor.Load() {
	}
}

// Shift moves a record's times back by d, as if d had passed since. It is for tests, which never sleep.
func (s *Store) Shift(id driver.ID, d time.Duration) {
	sh := s.shard(&id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var r driver.Record
	kept, _ := sh.read(&id, &r)
	if kept == nil {
		return
	}
	for _, t := range []*time.Time{&r.LeaseUntil, &r.DeadlineAt, &r.RepeatableUntil, &r.CreatedAt, &r.ClaimedAt, &r.UpdatedAt, &r.CompletedAt, &r.ExpiresAt} {
		if !t.IsZero() {
			*t = t.Add(-d)
		}
	}
	sh.write(kept, &r, state.Update)
}

// Put writes a record as it is. It is for tests, which need records that no call leaves behind.
func (s *Store) Put(r driver.Record) {
	sh := s.shard(&r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	kept, w := sh.rows[r.ID], state.Update
	if kept == nil {
		s.count.Add(1)
		w = state.Insert
	}
	sh.write(kept, &r, w)
}
