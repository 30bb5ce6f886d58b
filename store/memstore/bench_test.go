package memstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/store/memstore"
)

// floor is the hand-written minimum of somebody who needs an answer that is right: one mutex, one map; it compares
// fingerprints, knows owners, leases and expiry, and keeps a copy of the result. It has no limit, no purge, no fence,
// no failures, nothing to show to a person. Clock and copy stay outside the lock, as a careful hand would have them.
type floor struct {
	mu      sync.Mutex
	records map[driver.ID]*floorRecord
}

type floorRecord struct {
	fingerprint fingerprint.Sum
	owner       driver.Owner
	done        bool
	until       time.Time // the lease, then the expiry
	data        []byte
}

func (f *floor) claim(id driver.ID, sum *fingerprint.Sum, owner driver.Owner, lease time.Duration) (data []byte, v driver.Verdict) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.records[id]
	if r == nil {
		f.records[id] = &floorRecord{fingerprint: *sum, owner: owner, until: now.Add(lease)}
		return nil, driver.GotClaim
	}
	switch over := !now.Before(r.until); {
	case over:
		*r = floorRecord{fingerprint: *sum, owner: owner, until: now.Add(lease)}
		return nil, driver.GotClaim
	case r.fingerprint != *sum:
		return nil, driver.Mismatch
	case r.done:
		return r.data, driver.Done
	}
	return nil, driver.InFlight
}

func (f *floor) finish(id driver.ID, owner driver.Owner, retention time.Duration, data []byte) bool {
	now, data := time.Now(), append([]byte(nil), data...)
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.records[id]
	if r == nil || r.owner != owner {
		return false
	}
	r.done, r.until, r.data = true, now.Add(retention), data
	return true
}

// contestant makes a claim with its finish, or a replay, and says whether the answer was right.
type contestant interface {
	first(c *driver.Claim, data []byte) bool
	replay(c *driver.Claim, size int) bool
}

func (f *floor) first(c *driver.Claim, data []byte) bool {
	_, v := f.claim(c.ID, &c.Fingerprint, c.Owner, c.Lease)
	return v == driver.GotClaim && f.finish(c.ID, c.Owner, c.Retention, data)
}

func (f *floor) replay(c *driver.Claim, size int) bool {
	data, v := f.claim(c.ID, &c.Fingerprint, c.Owner, c.Lease)
	return v == driver.Done && len(data) == size
}

type ours struct {
	ctx   context.Context //nolint:containedctx // the benchmark's own
	store *memstore.Store
}

func (o ours) first(c *driver.Claim, data []byte) bool {
	got, err := o.store.Claim(o.ctx, *c)
	if err != nil || got.Verdict != driver.GotClaim {
		return false
	}
	end, err := o.store.Finish(o.ctx, driver.Finish{Claim: *c, Fence: got.Record.Fence, Attempt: 1,
		Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: data}}})
	return err == nil && end.Applied
}

func (o ours) replay(c *driver.Claim, size int) bool {
	got, err := o.store.Claim(o.ctx, *c)
	return err == nil && got.Verdict == driver.Done && len(got.Record.Result.Data) == size
}

// BenchmarkStore compares the store with the floor, from 1 and 64 callers: a claim with its finish of 256 bytes, and a
// replay of one of a thousand. Both run in turns, so that what else the machine does hits both, and the median ratio of
// their rates is reported as x. Each turn of first claims begins with empty stores: a heap that only grows would measure
// how fast the machine gives memory.
func BenchmarkStore(b *testing.B) {
	const perTurn, keys, size = 50_000, 1000, 256
	data := make([]byte, size)
	open := func() [2]contestant {
		return [...]contestant{ours{b.Context(), memstore.New(&memstore.Options{MaxRecords: 1 << 30})}, &floor{records: map[driver.ID]*floorRecord{}}}
	}
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("first/callers=%d", callers), func(b *testing.B) {
			inTurns(b, perTurn, func(n int) (turns [2]func() bool) {
				for i, s := range open() {
					turns[i] = func() bool {
						return storm(callers, n, func(c *driver.Claim, n int) bool {
							c.ID = idOf(n)
							return s.first(c, data)
						})
					}
				}
				return turns
			})
		})
		b.Run(fmt.Sprintf("replay/callers=%d", callers), func(b *testing.B) {
			both := open()
			for _, s := range both {
				storm(1, keys, func(c *driver.Claim, n int) bool {
					c.ID = idOf(n)
					return s.first(c, data)
				})
			}
			inTurns(b, perTurn, func(n int) (turns [2]func() bool) {
				for i, s := range both {
					turns[i] = func() bool {
						return storm(callers, n, func(c *driver.Claim, n int) bool {
							c.ID = idOf(n % keys)
							return s.replay(c, size)
						})
					}
				}
				return turns
			})
		})
	}
}

// inTurns makes b.N calls of ours and of the floor in turns of at most so many. open returns both sides' next turn of n
// calls, which says whether all answers were right.
func inTurns(b *testing.B, perTurn int, open func(n int) [2]func() bool) {
	b.Helper()
	var took [2]time.Duration
	var before, after [2]runtime.MemStats
	var bytes, allocs uint64
	var ratios []float64
	for left := b.N; left > 0; left -= perTurn {
		var d [2]time.Duration
		for i, turn := range open(min(left, perTurn)) {
			runtime.GC() // nobody pays for the other's garbage
			runtime.ReadMemStats(&before[i])
			start := time.Now()
			if !turn() {
				b.Fatal("a wrong answer")
			}
			d[i] = time.Since(start)
			runtime.ReadMemStats(&after[i])
			took[i] += d[i]
		}
		bytes += after[0].TotalAlloc - before[0].TotalAlloc
		allocs += after[0].Mallocs - before[0].Mallocs
		ratios = append(ratios, float64(d[1])/float64(d[0]))
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[0])/float64(b.N), "own-ns/op")
	b.ReportMetric(float64(took[1])/float64(b.N), "floor-ns/op")
	b.ReportMetric(float64(bytes)/float64(b.N), "own-B/op")
	b.ReportMetric(float64(allocs)/float64(b.N), "own-allocs/op")
	b.ReportMetric(ratios[len(ratios)/2], "x")
}

// storm shares n calls among callers. Nothing but the contestant is shared by them.
func storm(callers, n int, call func(c *driver.Claim, n int) bool) bool {
	var wrong atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			c := claimOf("k")
			for i := i; i < n; i += callers {
				if !call(&c, i) {
					wrong.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return wrong.Load() == 0
}

// idOf spreads numbers as a digest does, at less than the cost of one.
func idOf(n int) (id driver.ID) {
	x := uint64(n)
	for i := 0; i < len(id); i += 8 {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(id[i:], z^z>>31)
	}
	return id
}
