//go:build !race

package onceward_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

// TestAllocations: what a call costs on the memory store, with bytes for a result. It is not parallel: AllocsPerRun
// counts for the whole process. The race detector makes allocations of its own.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "pay", Codec: onceward.Raw{}})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := fingerprint.Of(nil)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 200
	keys := make([]key.Key, 2*(runs+1)) // AllocsPerRun runs once more, to warm up
	for i := range keys {
		keys[i] = k(fmt.Sprint("key-", i))
	}
	next := 0
	do := func() {
		_, err := onceward.Do(t.Context(), op, onceward.Call{Key: keys[next], Fingerprint: sum}, func(context.Context) ([]byte, error) { return []byte{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		next++
	}
	for range 2 { // the maps and the type's check are warm the second time
		next %= len(keys)
		if first := testing.AllocsPerRun(runs, do); first > 8+3 {
			t.Errorf("a first run makes %v allocations", first)
		}
	}
	next = 0
	if replay := testing.AllocsPerRun(runs, do); replay > 1 {
		t.Errorf("a replay makes %v allocations", replay)
	}
}
