package storetest

import (
	"strings"

	"github.com/onceward/onceward/driver"
)

func scanCases() []Case {
	return []Case{
		{"scan/sees every record once", func(t T, h *Harness) {
			b := open(t, h)
			s := b.sweeper()
			want := map[driver.ID]bool{}
			for i := range 25 {
				c := ask(strings.Repeat("k", i+1))
				got := b.wins(c)
				want[c.ID] = true
				if i%2 == 0 {
					b.ends(endOf(c, got, success("secret")), true)
				}
			}
			for after := ""; ; {
				page, err := s.Scan(t.Context(), driver.Scan{After: after, Limit: 4})
				if err != nil || len(page.Snapshots) > 4 {
					t.Fatalf("%d rows, %v", len(page.Snapshots), err)
				}
				for _, snap := range page.Snapshots {
					if !want[snap.Record.ID] || snap.Record.Result.Data != nil || snap.Now.IsZero() {
						t.Errorf("%v twice, unasked, or with its bytes", snap.Record.ID)
					}
					delete(want, snap.Record.ID)
				}
				if after = page.Next; after == "" {
					break
				}
			}
			if len(want) > 0 {
				t.Errorf("%d records were not seen", len(want))
			}
		}},
		{"scan/chooses", func(t T, h *Harness) {
			b := open(t, h)
			s := b.sweeper()
			live, dead, unclear, done := ask("live"), ask("dead"), ask("unclear"), ask("done")
			b.wins(live)
			b.wins(dead)
			b.shift(dead.ID, 2*lease)
			b.ends(endOf(unclear, b.wins(unclear), failure(driver.Unknown, "cut")), true)
			b.ends(endOf(done, b.wins(done), success("r")), true)
			for which, n := range map[driver.Which]int{driver.All: 4, driver.Open: 2, driver.Lapsed: 1, driver.Unclear: 1} {
				page, err := s.Scan(t.Context(), driver.Scan{Limit: 100, Which: which})
				if err != nil || len(page.Snapshots) != n {
					t.Errorf("which %d: %d records, want %d, %v", which, len(page.Snapshots), n, err)
				}
			}
		}},
	}
}

// sweeper skips the case on a store that has not this optional power.
func (b *bench) sweeper() driver.Sweeper {
	b.Helper()
	s, ok := b.s.(driver.Sweeper)
	if !ok {
		b.Skipf("%T is no driver.Sweeper", b.s)
	}
	return s
}
