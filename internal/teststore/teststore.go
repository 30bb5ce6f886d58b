// Package teststore opens every kind of store for tests, each empty and by itself.
package teststore

import (
	"testing"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

// Kind is a kind of store.
type Kind struct {
	Name string
	// Harness makes the harness whose stores end with t at the latest.
	Harness func(t *testing.T) storetest.Harness
}

// Kinds are all of them. The slice is the caller's.
func Kinds() []Kind {
	return []Kind{
		{"memory", func(*testing.T) storetest.Harness { return Memory() }},
		{"sqlite", func(t *testing.T) storetest.Harness { return SQLite(t) }},
		{"postgres", func(t *testing.T) storetest.Harness { return Postgres(t, "").Harness() }},
		{"mysql", func(t *testing.T) storetest.Harness { return MySQL(t, "").Harness() }},
	}
}

// Each runs a test on every kind, side by side.
func Each(t *testing.T, run func(t *testing.T, h *storetest.Harness)) {
	t.Helper()
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			h := k.Harness(t)
			run(t, &h)
		})
	}
}

// Memory is the harness of package memstore. Processes can't share its data: Second is the same object.
func Memory() storetest.Harness {
	return storetest.Harness{
		Open: func(storetest.T) driver.Store { return memstore.New(nil) },
		Edit: func(t storetest.T, s driver.Store, id driver.ID, change func(*driver.Record)) {
			t.Helper()
			snap, err := s.Get(t.Context(), id)
			if err != nil {
				t.Fatalf("edit: %v", err)
			}
			change(&snap.Record)
			s.(*memstore.Store).Put(snap.Record)
		},
	}
}
