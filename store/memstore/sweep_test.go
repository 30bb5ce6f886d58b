package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
	"github.com/onceward/onceward/store/memstore"
)

// TestFullStore: at its limit the store drops what expired, then refuses new keys, and never evicts.
func TestFullStore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := memstore.New(&memstore.Options{MaxRecords: 2, Now: func() time.Time { return now }})
	done(t, s, "a")
	done(t, s, "b")
	if _, err := s.Claim(t.Context(), claimOf("c")); !errors.Is(err, driver.ErrStoreFull) {
		t.Fatalf("a third key: %v", err)
	}
	if got, err := s.Claim(t.Context(), claimOf("a")); err != nil || got.Verdict != driver.Done {
		t.Fatalf("a known key: verdict %d, %v", got.Verdict, err)
	}
	now = now.Add(time.Hour) // to the moment in which both expire
	done(t, s, "c")
	done(t, s, "d")
	if _, err := s.Claim(t.Context(), claimOf("e")); !errors.Is(err, driver.ErrStoreFull) {
		t.Fatalf("a third key after the first two expired: %v", err)
	}
}

// TestFullStoreTakesTheEndOfWork: what an attempt did is kept even where there is no room for another one, because
// without its record the work would be done again.
func TestFullStoreTakesTheEndOfWork(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := memstore.New(&memstore.Options{MaxRecords: 1, Now: func() time.Time { return now }})
	done(t, s, "a")
	lost := claimOf("lost")
	end, err := s.Finish(t.Context(), endOf(lost, driver.Claimed{Record: driver.Record{Fence: 7, Attempt: 1}}, "r"))
	if err != nil || !end.Applied {
		t.Fatalf("applied %v, %v", end.Applied, err)
	}
	if got, err := s.Claim(t.Context(), lost); err != nil || got.Verdict != driver.Done {
		t.Fatalf("verdict %d, %v", got.Verdict, err)
	}
	now = now.Add(time.Hour)
	done(t, s, "b") // both were counted, both are gone
	if _, err := s.Claim(t.Context(), claimOf("c")); !errors.Is(err, driver.ErrStoreFull) {
		t.Fatalf("a second key: %v", err)
	}
}

// TestLimitHoldsInAStorm: however many come at once, the store takes as many as it has room for, and not one more.
func TestLimitHoldsInAStorm(t *testing.T) {
	t.Parallel()
	const room, callers = 37, 200
	s := memstore.New(&memstore.Options{MaxRecords: room})
	var took, refused atomic.Int64
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-gate
			switch got, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i))); {
			case err == nil && got.Verdict == driver.GotClaim:
				took.Add(1)
			case errors.Is(err, driver.ErrStoreFull):
				refused.Add(1)
			default:
				t.Errorf("verdict %d, %v", got.Verdict, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if took.Load() != room || refused.Load() != callers-room {
		t.Errorf("%d taken, %d refused of %d with room for %d", took.Load(), refused.Load(), callers, room)
	}
}

// purge drops up to limit of what has expired, and returns how many.
func purge(ctx context.Context, s *memstore.Store, limit int) (n int, err error) {
	for after := ""; n < limit; {
		page, err := s.Scan(ctx, driver.Scan{After: after, Limit: min(limit-n, driver.MaxPurge), Which: driver.Due})
		if err != nil {
			return n, err
		}
		var expired driver.Purge
		for i := range page.Snapshots {
			if snap := &page.Snapshots[i]; state.Expired(&snap.Record, snap.Now) {
				expired.IDs, expired.Floor = append(expired.IDs, snap.Record.ID), max(expired.Floor, snap.Record.Fence)
			}
		}
		dropped, err := s.Purge(ctx, expired)
		n += dropped
		if after = page.Next; err != nil || after == "" {
			return n, err
		}
	}
	return n, nil
}

// TestPurge: it drops nothing before its time, and nothing that has no time.
func TestPurge(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	const n = 600 // some in each shard
	for i := range n {
		done(t, s, fmt.Sprint(i))
	}
	if _, err := s.Claim(t.Context(), claimOf("running")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(30 * time.Minute)
	for i := range n {
		done(t, s, fmt.Sprint("later ", i))
	}
	for _, step := range []struct {
		wait        time.Duration
		limit, want int
	}{
		{0, 2 * n, 0}, {30 * time.Minute, 0, 0}, {0, 1, 1}, {0, 1, 1}, {0, n / 2, n / 2}, {0, 2 * n, n/2 - 2}, {0, 2 * n, 0},
		{30 * time.Minute, 2 * n, n}, {1000 * time.Hour, 2 * n, 0},
	} {
		now = now.Add(step.wait)
		if n, err := purge(t.Context(), s, step.limit); err != nil || n != step.want {
			t.Errorf("after %v, at most %d: %d were purged, want %d, %v", step.wait, step.limit, n, step.want, err)
		}
	}
	if _, err := s.Get(t.Context(), claimOf("running").ID); err != nil {
		t.Errorf("what runs: %v", err)
	}
}

// TestFenceOutlivesAPurge: the fence of a key grows even over its purge and a clock that was set back.
func TestFenceOutlivesAPurge(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	first := done(t, s, "a")
	now = now.Add(2 * time.Hour)
	if n, err := purge(t.Context(), s, 10); err != nil || n != 1 {
		t.Fatalf("%d purged, %v", n, err)
	}
	now = now.Add(-4 * time.Hour)
	if again := done(t, s, "a"); again.Fence <= first.Fence {
		t.Errorf("fence %d after %d", again.Fence, first.Fence)
	}
}

func TestScanRefusesForeignPages(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"x", "00", "zz"} {
		if _, err := memstore.New(nil).Scan(t.Context(), driver.Scan{After: after, Limit: 1}); err == nil {
			t.Errorf("%q was taken for a page", after)
		}
	}
}

// TestCaseB065MemoryOfDeadKeysComesBack: what expired and was purged leaves nothing behind. It is not parallel: it
// weighs the heap of the whole process.
func TestCaseB065MemoryOfDeadKeysComesBack(t *testing.T) { //nolint:paralleltest // see above
	n := 100_000
	if os.Getenv("ONCEWARD_LONG") != "" {
		n = 1_000_000
	}
	now := time.Now()
	s := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	done(t, s, "warm")
	routines, start := runtime.NumGoroutine(), heap()
	for i := range n - 1 {
		done(t, s, fmt.Sprint(i))
	}
	if full := heap(); full < start+uint64(n)*300 {
		t.Fatalf("%d records weigh %d bytes: the scale is broken", n, full-start)
	}
	now = now.Add(2 * time.Hour)
	if purged, err := purge(t.Context(), s, n+1); err != nil || purged != n {
		t.Fatalf("%d purged of %d, %v", purged, n, err)
	}
	if end := heap(); end > start+start/10 {
		t.Errorf("%d bytes before, %d after", start, end)
	}
	if got := runtime.NumGoroutine(); got > routines {
		t.Errorf("%d goroutines before, %d after", routines, got)
	}
	runtime.KeepAlive(s)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // the first one frees what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCaseB065DeletingNeverLetsTwoIn: a hundred callers claim, finish and purge one key; its attempts never overlap.
func TestCaseB065DeletingNeverLetsTwoIn(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64 // each look at it is a retention later: what has ended has expired
	s := memstore.New(&memstore.Options{Now: func() time.Time { return time.Unix(0, 0).Add(time.Duration(clock.Add(1)) * time.Hour) }})
	var inside, ran atomic.Int64
	var guarded, last int64 // by the claim alone
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for range 50 {
				c := claimOf("k")
				c.Owner = driver.Owner{byte(i), 1}
				c.Lease = 1 << 62 // of no concern here
				got, err := s.Claim(t.Context(), c)
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				if got.Verdict != driver.GotClaim {
					_, _ = purge(t.Context(), s, 1)
					runtime.Gosched()
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d are inside", n)
				}
				if got.Record.Fence <= last {
					t.Errorf("fence %d after %d", got.Record.Fence, last)
				}
				guarded++
				last = got.Record.Fence
				ran.Add(1)
				inside.Add(-1)
				if _, err := s.Finish(t.Context(), endOf(c, got, "r")); err != nil {
					t.Errorf("finish: %v", err)
				}
				_, _ = purge(t.Context(), s, 1)
			}
		})
	}
	wg.Wait()
	if guarded != ran.Load() || guarded == 0 {
		t.Errorf("%d counted under the claim, %d in all", guarded, ran.Load())
	}
}
