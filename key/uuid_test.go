package key

import (
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

var uuidv7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestNewIsAUUIDv7OfNow(t *testing.T) {
	t.Parallel()
	before := time.Now().UnixMilli()
	k := New()
	if !uuidv7.MatchString(k.Reveal()) {
		t.Fatal(k.Reveal())
	}
	at, ok := k.Time()
	// The counter may run ahead of the clock when other tests have used it up.
	if !ok || at.UnixMilli() < before || at.After(time.Now().Add(time.Minute)) {
		t.Fatalf("%v, %v", at, ok)
	}
}

func TestNewGrowsInOneMillisecond(t *testing.T) {
	t.Parallel()
	var g generator
	now := time.UnixMilli(1_700_000_000_000)
	last := ""
	for i := range 20_000 { // several times the counter
		text := g.next(now).text
		if text <= last {
			t.Fatalf("number %d: %s after %s", i, text, last)
		}
		last = text
	}
	at, _ := TimePrefix(last)
	if ahead := int64(at[5]) - now.UnixMilli()&0xFF; ahead < 4 || ahead > 10 {
		t.Fatalf("the time went ahead by %d ms for 20,000 keys", ahead)
	}
}

func TestNewGrowsWhenTheClockStepsBack(t *testing.T) {
	t.Parallel()
	var g generator
	now := time.UnixMilli(1_700_000_000_000)
	first := g.next(now).text
	second := g.next(now.Add(-time.Hour)).text
	third := g.next(now.Add(time.Millisecond)).text
	if first >= second || second >= third {
		t.Fatal(first, second, third)
	}
}

func TestNewConcurrently(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 1000
	var wg sync.WaitGroup
	made := make([][]string, goroutines)
	for i := range made {
		wg.Go(func() {
			for range each {
				made[i] = append(made[i], New().text)
			}
		})
	}
	wg.Wait()
	all := map[string]bool{}
	for _, texts := range made {
		if !slices.IsSorted(texts) {
			t.Error("keys of one goroutine do not grow")
		}
		for _, text := range texts {
			all[text] = true
		}
	}
	if len(all) != goroutines*each {
		t.Fatalf("%d different keys of %d", len(all), goroutines*each)
	}
}
