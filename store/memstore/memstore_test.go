package memstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

func harness() storetest.Harness {
	return storetest.Harness{
		Open: func(storetest.T) driver.Store { return memstore.New(nil) },
		Edit: func(t storetest.T, s driver.Store, id driver.ID, change func(*driver.Record)) {
			snap, err := s.Get(t.Context(), id)
			if err != nil {
				t.Fatalf("edit: %v", err)
			}
			change(&snap.Record)
			s.(*memstore.Store).Put(snap.Record)
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness())
}

func TestModel(t *testing.T) {
	t.Parallel()
	h := harness()
	storetest.Model(t, &h, uint64(time.Now().UnixNano()), 100_000)
}

func claimOf(text string) driver.Claim {
	sum, _ := fingerprint.Of(nil)
	c := driver.Claim{Operation: "pay", Key: text, Fingerprint: sum, Owner: driver.Owner{1}, Lease: time.Minute, Timeout: time.Minute, Retention: time.Hour, MaxAttempts: 1}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	return c
}

// TestFullStore: at its limit the store drops what expired, then refuses new keys, and never evicts.
func TestFullStore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := memstore.New(&memstore.Options{MaxRecords: 2, Now: func() time.Time { return now }})
	for _, k := range []string{"a", "b"} {
		got, err := s.Claim(t.Context(), claimOf(k))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Finish(t.Context(), driver.Finish{Claim: claimOf(k), Fence: got.Record.Fence, Attempt: 1,
			Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Data: []byte(k)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Claim(t.Context(), claimOf("c")); !errors.Is(err, driver.ErrStoreFull) {
		t.Fatalf("a third key: %v", err)
	}
	if got, err := s.Claim(t.Context(), claimOf("a")); err != nil || got.Verdict != driver.Done {
		t.Fatalf("a known key: %v %v", got.Verdict, err)
	}
	floor, _ := s.Get(t.Context(), claimOf("a").ID)
	now = now.Add(2 * time.Hour)
	got, err := s.Claim(t.Context(), claimOf("c"))
	if err != nil || got.Verdict != driver.GotClaim {
		t.Fatalf("after they expired: %v %v", got.Verdict, err)
	}
	now = now.Add(-90 * time.Minute) // a clock set back: the fence still grows
	if _, err := s.Purge(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	again, err := s.Claim(t.Context(), claimOf("a"))
	if err == nil && again.Verdict == driver.GotClaim && again.Record.Fence <= floor.Record.Fence {
		t.Fatalf("fence %d after %d", again.Record.Fence, floor.Record.Fence)
	}
}

// TestCaseB065MemoryOfDeadKeysComesBack: what expired and was purged leaves nothing behind.
func TestCaseB065MemoryOfDeadKeysComesBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	const n = 20_000
	for i := range n {
		c := claimOf(time.Duration(i).String())
		got, err := s.Claim(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Finish(t.Context(), driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: 1,
			Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Data: []byte("r")}}}); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(2 * time.Hour)
	if purged, err := s.Purge(t.Context(), n+1); err != nil || purged != n {
		t.Fatalf("purged %d, %v", purged, err)
	}
	page, err := s.Scan(t.Context(), driver.Scan{Limit: 10})
	if err != nil || len(page.Snapshots) != 0 || page.Next != "" {
		t.Fatalf("%+v %v", page, err)
	}
}
