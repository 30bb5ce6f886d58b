package key_test

import (
	"testing"

	"github.com/onceward/onceward/key"
)

func TestReadingAKeyDoesNotAllocate(t *testing.T) { // not parallel: AllocsPerRun counts those of every goroutine
	bare, quoted := []string{"0198c2d4-7b3e-7cc1-9f00-0123456789ab"}, []string{`"0198c2d4-7b3e-7cc1-9f00-0123456789ab";v=1`}
	n := testing.AllocsPerRun(100, func() {
		for _, values := range [][]string{bare, quoted} {
			k, _ := key.ParseHeader(values)
			k.TimePrefix()
			if k.HeaderValue() != bare[0] {
				t.Error("another key")
			}
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkParseHeader(b *testing.B) {
	values := []string{"0198c2d4-7b3e-7cc1-9f00-0123456789ab"}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = key.ParseHeader(values)
	}
}

func BenchmarkTimePrefix(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		key.TimePrefix("0198c2d4-7b3e-7cc1-9f00-0123456789ab")
	}
}

func BenchmarkCompose(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = key.Compose("pay", "o-20261130-000001", 7)
	}
}

func BenchmarkDerive(b *testing.B) {
	parent := must(b, "0198c2d4-7b3e-7cc1-9f00-0123456789ab")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = key.Derive(parent, "bank")
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		key.New()
	}
}
