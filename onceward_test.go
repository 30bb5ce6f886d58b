package onceward_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

type receipt struct {
	ID     string
	Amount int64
}

func newGuard(t *testing.T) *onceward.Guard {
	t.Helper()
	g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestStormRunsOnce(t *testing.T) {
	t.Parallel()
	g := newGuard(t)
	pay, err := g.Define(onceward.Operation{Name: "pay", OnInFlight: onceward.Wait(onceward.DefaultTimeout)})
	if err != nil {
		t.Fatal(err)
	}
	k, runs := key.New(), atomic.Int64{}
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			r, err := onceward.Do(t.Context(), pay, onceward.Call{Key: k, Request: 7}, func(context.Context) (receipt, error) {
				runs.Add(1)
				return receipt{"r1", 9007199254740993}, nil
			})
			if err != nil || r.Amount != 9007199254740993 {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if runs.Load() != 1 {
		t.Fatalf("ran %d times", runs.Load())
	}
	_, err = onceward.Do(t.Context(), pay, onceward.Call{Key: k, Request: 8}, func(context.Context) (receipt, error) { return receipt{}, nil })
	if !errors.Is(err, onceward.ErrMismatch) {
		t.Fatalf("another request: %v", err)
	}
}
