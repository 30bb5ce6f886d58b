// Package oncetest makes it cheap to prove that work takes effect once.
package oncetest

import (
	"reflect"
	"sync"
)

// T is what is needed of a test; *testing.T has it.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Twice runs fn twice and fails t unless both runs return the same value without error.
func Twice[R any](t T, fn func() (R, error)) R {
	t.Helper()
	first, err := fn()
	if err != nil {
		t.Errorf("the first run: %v", err)
	}
	second, err := fn()
	if err != nil {
		t.Errorf("the second run: %v", err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Errorf("the first run returned %+v, the second %+v", first, second)
	}
	return first
}

// Storm runs fn in n goroutines that start at once, and returns their errors by number.
func Storm(t T, fn func(i int) error, n int) []error {
	t.Helper()
	errs := make([]error, n)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-gate
			errs[i] = fn(i)
		})
	}
	close(gate)
	wg.Wait()
	return errs
}

// Ledger counts effects by name. The zero value is empty and ready; safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	counts map[string]int
}

// Add notes one effect.
func (l *Ledger) Add(effect string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[effect]++
}

// Count returns how often the effect happened.
func (l *Ledger) Count(effect string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[effect]
}

// WantOnce fails t unless each of the effects happened exactly once.
func (l *Ledger) WantOnce(t T, effects ...string) {
	t.Helper()
	for _, e := range effects {
		if n := l.Count(e); n != 1 {
			t.Errorf("the effect %q happened %d times, not once", e, n)
		}
	}
}
