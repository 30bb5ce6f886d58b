package memstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/memstore"
)

// floor is the hand-written minimum: one mutex, one map, no lease, no expiry, no limit.
type floor struct {
	mu      sync.Mutex
	records map[driver.ID]*floorRecord
}

type floorRecord struct {
	claim driver.Claim
	done  bool
	data  []byte
}

func (f *floor) claim(c *driver.Claim) (data []byte, won, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.records[c.ID]; r != nil {
		return r.data, false, r.done && r.claim.Fingerprint == c.Fingerprint
	}
	f.records[c.ID] = &floorRecord{claim: *c}
	return nil, true, false
}

func (f *floor) finish(c *driver.Claim, data []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.records[c.ID]
	if r == nil || r.claim.Owner != c.Owner {
		return false
	}
	r.done, r.data = true, append([]byte(nil), data...)
	return true
}

// BenchmarkStore compares the store with the floor, from 1 and 64 callers: a claim with its finish, and a replay.
func BenchmarkStore(b *testing.B) {
	data := make([]byte, 256)
	for _, callers := range []int{1, 64} {
		newStore := func() (first, replay func(*driver.Claim) bool) {
			s := memstore.New(&memstore.Options{MaxRecords: 1 << 30})
			return func(c *driver.Claim) bool {
					got, err := s.Claim(b.Context(), *c)
					if err != nil || got.Verdict != driver.GotClaim {
						return false
					}
					end, err := s.Finish(b.Context(), driver.Finish{Claim: *c, Fence: got.Record.Fence, Attempt: 1,
						Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: data}}})
					return err == nil && end.Applied
				}, func(c *driver.Claim) bool {
					got, err := s.Claim(b.Context(), *c)
					return err == nil && got.Verdict == driver.Done && len(got.Record.Result.Data) == len(data)
				}
		}
		newFloor := func() (first, replay func(*driver.Claim) bool) {
			f := &floor{records: map[driver.ID]*floorRecord{}}
			return func(c *driver.Claim) bool {
					_, won, _ := f.claim(c)
					return won && f.finish(c, data)
				}, func(c *driver.Claim) bool {
					got, _, done := f.claim(c)
					return done && len(got) == len(data)
				}
		}
		for _, side := range []struct {
			name string
			open func() (first, replay func(*driver.Claim) bool)
		}{{"floor", newFloor}, {"store", newStore}} {
			b.Run(fmt.Sprintf("first/callers=%d/%s", callers, side.name), func(b *testing.B) {
				first, _ := side.open()
				storm(b, callers, func(n uint64) bool {
					c := claimOf("k")
					c.ID = idOf(n)
					return first(&c)
				})
			})
			b.Run(fmt.Sprintf("replay/callers=%d/%s", callers, side.name), func(b *testing.B) {
				first, replay := side.open()
				const keys = 1000
				claims := make([]driver.Claim, keys)
				for i := range claims {
					claims[i] = claimOf("k")
					claims[i].ID = idOf(uint64(i))
					if !first(&claims[i]) {
						b.Fatal("no first result")
					}
				}
				storm(b, callers, func(n uint64) bool { return replay(&claims[n%keys]) })
			})
		}
	}
}

// idOf spreads numbers as a digest does.
func idOf(n uint64) (id driver.ID) {
	for i := range id {
		n = n*6364136223846793005 + 1442695040888963407
		id[i] = byte(n >> 56)
	}
	return id
}

// storm shares b.N calls, numbered from 0, among callers.
func storm(b *testing.B, callers int, call func(n uint64) bool) {
	b.Helper()
	b.ReportAllocs()
	var next atomic.Uint64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for n := next.Add(1); n <= uint64(b.N); n = next.Add(1) {
				if !call(n - 1) {
					b.Error("refused")
					return
				}
			}
		})
	}
	wg.Wait()
}
