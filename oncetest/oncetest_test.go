package oncetest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward/oncetest"
)

// recorder is a test that only notes its failures.
type recorder struct{ failures []string }

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestTwice(t *testing.T) {
	t.Parallel()
	n := 0
	next := func() (int, error) { n++; return n, nil }
	broken := func() (int, error) { return 1, errors.New("broken") }
	for _, c := range []struct {
		name     string
		fn       func() (int, error)
		failures int
	}{
		{"same", func() (int, error) { return 1, nil }, 0}, {"differs", next, 1}, {"fails", broken, 2},
	} {
		var r recorder
		if v := oncetest.Twice(&r, c.fn); v != 1 || len(r.failures) != c.failures {
			t.Errorf("%s: %d, %q", c.name, v, r.failures)
		}
	}
}

// TestStormStartsAtOnce: each of its goroutines waits for all the others, so none could run alone.
func TestStormStartsAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	var in atomic.Int32
	all := make(chan struct{})
	errs := oncetest.Storm(t, func(i int) error {
		if in.Add(1) == n {
			close(all)
		}
		<-all
		if i%2 == 1 {
			return fmt.Errorf("%d", i)
		}
		return nil
	}, n)
	if len(errs) != n {
		t.Fatalf("%d errors", len(errs))
	}
	for i, err := range errs {
		if (err != nil) != (i%2 == 1) || err != nil && err.Error() != fmt.Sprint(i) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	var l oncetest.Ledger
	oncetest.Storm(t, func(int) error { l.Add("many"); return nil }, 50)
	l.Add("one")
	if l.Count("many") != 50 || l.Count("one") != 1 || l.Count("none") != 0 {
		t.Errorf("%d, %d, %d", l.Count("many"), l.Count("one"), l.Count("none"))
	}
	var r recorder
	l.WantOnce(&r, "one")
	if len(r.failures) != 0 {
		t.Errorf("%q", r.failures)
	}
	l.WantOnce(&r, "one", "many", "none")
	if len(r.failures) != 2 || !strings.Contains(r.failures[0], `"many" happened 50 times`) || !strings.Contains(r.failures[1], `"none" happened 0 times`) {
		t.Errorf("%q", r.failures)
	}
}
