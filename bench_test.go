package onceward_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

func benchOp(b *testing.B) (*onceward.Op, fingerprint.Sum) {
	b.Helper()
	g, err := onceward.New(memstore.New(&memstore.Options{MaxRecords: 1 << 30}), &onceward.Options{SingleTenant: true})
	if err != nil {
		b.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "pay", Codec: onceward.Raw{}})
	if err != nil {
		b.Fatal(err)
	}
	sum, err := fingerprint.Of(nil)
	if err != nil {
		b.Fatal(err)
	}
	return op, sum
}

func keys(b *testing.B, n int) []key.Key {
	b.Helper()
	list := make([]key.Key, n)
	for i := range list {
		var err error
		if list[i], err = key.Parse("key-" + strconv.Itoa(i)); err != nil {
			b.Fatal(err)
		}
	}
	return list
}

var result = make([]byte, 256)

// BenchmarkDoFirst is a first execution on the memory store, with a result of 256 bytes.
func BenchmarkDoFirst(b *testing.B) {
	op, sum := benchOp(b)
	list := keys(b, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		_, err := onceward.Do(context.Background(), op, onceward.Call{Key: list[i], Fingerprint: sum}, func(context.Context) ([]byte, error) { return result, nil }) //nolint:usetesting // a context without a cost
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDoReplay is a duplicate of a finished key.
func BenchmarkDoReplay(b *testing.B) {
	op, sum := benchOp(b)
	k := keys(b, 1)[0]
	b.ReportAllocs()
	for range b.N {
		_, err := onceward.Do(context.Background(), op, onceward.Call{Key: k, Fingerprint: sum}, func(context.Context) ([]byte, error) { return result, nil }) //nolint:usetesting // a context without a cost
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMinimumFirst is the hand-written floor: a map under one mutex.
func BenchmarkMinimumFirst(b *testing.B) {
	var mu sync.Mutex
	m := map[string][]byte{}
	list := keys(b, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		text := list[i].Reveal()
		mu.Lock()
		_, taken := m[text]
		if !taken {
			m[text] = nil
		}
		mu.Unlock()
		mu.Lock()
		m[text] = result
		mu.Unlock()
	}
}
