//go:build !race

package memstore_test

import (
	"fmt"
	"testing"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/memstore"
)

// TestAllocations: a claim and its finish cost the record and the copy of its result (the growth of the map beside
// them is shared by many), a replay nothing. It is not parallel: AllocsPerRun counts for the whole process.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	s := memstore.New(nil)
	const runs = 2000
	claims := make([]driver.Claim, runs+1) // AllocsPerRun runs once more, to warm up
	for i := range claims {
		claims[i] = claimOf(fmt.Sprint(i))
	}
	next := 0
	outcome := endOf(claims[0], driver.Claimed{}, "a result of some bytes").Outcome
	if n := testing.AllocsPerRun(runs, func() {
		got, err := s.Claim(t.Context(), claims[next])
		if err != nil || got.Verdict != driver.GotClaim {
			t.Fatal(got.Verdict, err)
		}
		if _, err := s.Finish(t.Context(), driver.Finish{Claim: claims[next], Fence: got.Record.Fence, Outcome: outcome}); err != nil {
			t.Fatal(err)
		}
		next++
	}); n > 3 {
		t.Errorf("claim and finish make %v allocations", n)
	}
	if n := testing.AllocsPerRun(runs, func() {
		if got, err := s.Claim(t.Context(), claims[0]); err != nil || got.Verdict != driver.Done {
			t.Fatal(got.Verdict, err)
		}
	}); n > 0 {
		t.Errorf("a replay makes %v allocations", n)
	}
}
