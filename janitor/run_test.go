package janitor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

// done leaves a finished record of one hour's retention.
func done(t *testing.T, s driver.Store, text string) driver.ID {
	t.Helper()
	c := claimOf(text, driver.LapseUnknown)
	got, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Finish(t.Context(), driver.Finish{Claim: c, Fence: got.Record.Fence, Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Data: []byte("r")}}}); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// unclear leaves a record whose outcome is unknown.
func unclear(t *testing.T, s driver.Store, text string) {
	t.Helper()
	c := claimOf(text, driver.LapseUnknown)
	got, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Finish(t.Context(), driver.Finish{Claim: c, Fence: got.Record.Fence, Outcome: driver.Outcome{Status: driver.Fail, Failure: driver.Unknown, Error: "cut"}}); err != nil {
		t.Fatal(err)
	}
}

// left is how many records there are.
func left(t *testing.T, s driver.Sweeper) int {
	t.Helper()
	page, err := s.Scan(t.Context(), driver.Scan{Limit: 1 << 20})
	if err != nil || page.Next != "" {
		t.Fatal(err)
	}
	return len(page.Snapshots)
}

func quiet(o janitor.Options) *janitor.Options {
	o.Logger = slog.New(slog.DiscardHandler)
	return &o
}

// pass lets time pass, in the bubble of synctest, where no real time does.
func pass(d time.Duration) { <-time.After(d) }

// TestCaseB117PurgesInBatches: never more than asked for at once, whatever there is; what was dropped stays so when it is
// called off, and the next sweep goes on.
func TestCaseB117PurgesInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		f := faultstore.New(s)
		const n = 5000
		for i := range n {
			done(t, s, fmt.Sprint(i))
		}
		pass(2 * time.Hour)
		done(t, s, "young")
		ctx, stop := context.WithCancel(t.Context())
		calls := 0
		cut := &batches{Store: s, each: func(ids int) {
			if ids > 100 {
				t.Errorf("%d records in one call", ids)
			}
			if calls++; calls == 10 {
				stop()
			}
		}}
		rep, err := janitor.Sweep(ctx, cut, quiet(janitor.Options{Page: 100}))
		if !errors.Is(err, context.Canceled) || rep.Purged == 0 || rep.Purged > 1000 || left(t, s) != n+1-rep.Purged {
			t.Errorf("%+v, %v, %d are left", rep, err, left(t, s))
		}
		before := rep.Purged
		rep, err = janitor.Sweep(t.Context(), f, quiet(janitor.Options{}))
		if err != nil || before+rep.Purged != n || rep.Expired != 0 || rep.Lag.Truncate(time.Minute) != time.Hour || left(t, s) != 1 {
			t.Errorf("%+v, %v, %d are left", rep, err, left(t, s))
		}
		// A thousand a call: what expires in a second is dropped by one.
		if c := f.Count(faultstore.Purge); c > n/driver.MaxPurge+1 {
			t.Errorf("%d calls for %d records", c, n-before)
		}
	})
}

// batches tells of every purge.
type batches struct {
	*memstore.Store
	each func(ids int)
}

func (b *batches) Purge(ctx context.Context, p driver.Purge) (int, error) {
	b.each(len(p.IDs))
	return b.Store.Purge(ctx, p)
}

// TestCaseB123KeptForEver: what is to be kept is never dropped, not even once.
func TestCaseB123KeptForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		f := faultstore.New(s)
		done(t, s, "k")
		pass(2 * time.Hour)
		run(t, f, janitor.Options{KeepExpired: true}, func(reports func() []janitor.Report) {
			pass(time.Hour)
			if all := reports(); len(all) < 100 || all[99].Expired != 1 || all[99].Purged != 0 || all[0].Lag != time.Hour || all[99].Lag <= all[0].Lag {
				t.Errorf("%d reports: %+v", len(all), all[len(all)-1])
			}
		})
		if n := f.Count(faultstore.Purge); n != 0 || left(t, s) != 2 { // with the janitors' own
			t.Errorf("%d purges, %d records", n, left(t, s))
		}
	})
}

// run runs a janitor while during goes on.
func run(t *testing.T, s janitor.Store, o janitor.Options, during func(reports func() []janitor.Report)) {
	t.Helper()
	var mu sync.Mutex
	var all []janitor.Report
	o.Observer = func(r janitor.Report, err error) {
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		r.Took = 0
		all = append(all, r)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := janitor.Run(ctx, s, quiet(o)); err != nil {
			t.Error(err)
		}
	})
	during(func() []janitor.Report {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	})
	stop()
	wg.Wait()
}

func TestWindow(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 8*3600)
	for _, c := range []struct {
		window string
		in     *time.Location
		open   []string // of the hours asked
	}{
		{"", nil, []string{"00:00", "01:59", "02:00", "04:59", "05:00", "18:00", "23:30"}},
		{"02:00-05:00", nil, []string{"02:00", "04:59"}},
		{"23:00-02:00", nil, []string{"00:00", "01:59", "23:30"}},
		{"02:00-05:00", east, []string{"18:00"}},
	} {
		var open []string
		for _, at := range []string{"00:00", "01:59", "02:00", "04:59", "05:00", "18:00", "23:30"} {
			now, _ := time.Parse("15:04", at)
			now = now.AddDate(2026, 0, 0)
			s := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
			id := done(t, s, "k")
			s.Shift(id, 24*time.Hour)
			rep, err := janitor.Sweep(t.Context(), s, quiet(janitor.Options{Window: c.window, Location: c.in}))
			if err != nil || rep.Purged+rep.Expired != 1 {
				t.Errorf("%+v, %v", rep, err)
			}
			if rep.Purged == 1 {
				open = append(open, at)
			}
		}
		if !slices.Equal(open, c.open) {
			t.Errorf("%q in %v is open at %v, want %v", c.window, c.in, open, c.open)
		}
	}
	for _, bad := range []string{"2-5", "02:00", "02:00-02:00", "25:00-03:00", "02:00-05:00-06:00", "off"} {
		if _, err := janitor.Sweep(t.Context(), memstore.New(nil), quiet(janitor.Options{Window: bad})); err == nil {
			t.Errorf("%q is a window", bad)
		}
		if err := janitor.Run(t.Context(), memstore.New(nil), quiet(janitor.Options{Window: bad})); err == nil {
			t.Errorf("%q is a window", bad)
		}
	}
	if _, err := janitor.Sweep(t.Context(), memstore.New(nil), quiet(janitor.Options{Page: driver.MaxPurge + 1})); err == nil {
		t.Error("a page that can't be purged at once")
	}
}

// TestOneOfSeveralLeads: while it lives nobody else sweeps; when it ends another one does at once, when it dies after its lease.
func TestOneOfSeveralLeads(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(nil)
				first, second := faultstore.New(mem), faultstore.New(mem)
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = janitor.Run(ctx, first, quiet(janitor.Options{})) })
				synctest.Wait()
				later, end := context.WithCancel(t.Context())
				wg.Go(func() { _ = janitor.Run(later, second, quiet(janitor.Options{})) })
				pass(24*time.Hour + time.Second) // more than the timeout of an attempt
				if a, b := first.Count(faultstore.Scan), second.Count(faultstore.Scan); a != 24*720+1 || b != 0 {
					t.Errorf("sweeps: %d and %d", a, b)
				}
				wait := 5 * time.Second
				if dies {
					for _, call := range []faultstore.Call{faultstore.Renew, faultstore.Finish, faultstore.Claim, faultstore.Scan} {
						first.Refuse(call, -1)
					}
					wait = 25 * time.Second // its lease, a grace, and the next turn
				}
				stop()
				synctest.Wait()
				pass(wait)
				if n := second.Count(faultstore.Scan); n == 0 {
					t.Error("nobody sweeps")
				}
				end()
				wg.Wait()
			})
		})
	}
}

// TestSweepsGoOnAfterAnOutage: errors are told of, nothing is settled twice, and the lead is taken again.
func TestSweepsGoOnAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		f := faultstore.New(mem)
		all := []faultstore.Call{faultstore.Claim, faultstore.Renew, faultstore.Finish, faultstore.Settle, faultstore.Scan, faultstore.Purge}
		run(t, f, janitor.Options{}, func(reports func() []janitor.Report) {
			pass(time.Minute)
			if _, err := mem.Claim(t.Context(), claimOf("dead", driver.LapseRepeat)); err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				f.Refuse(c, -1)
			}
			pass(10 * time.Minute)
			before := len(reports())
			for _, c := range all {
				f.Refuse(c, 0)
				f.Lose(c, 1)
			}
			pass(2 * time.Minute)
			rest := reports()[before:]
			settled := 0
			for i := range rest {
				settled += rest[i].Repeatable
			}
			if len(rest) < 10 || before < 12 || before > 13 {
				t.Errorf("%d reports before, %d after", before, len(rest))
			}
			// The reply of its settlement was lost: it stands, and no report counts it.
			if snap, err := mem.Get(t.Context(), claimOf("dead", 0).ID); err != nil || snap.Record.Failure != driver.Retryable || settled != 0 {
				t.Errorf("%+v %v, settled %d", snap.Record, err, settled)
			}
		})
	})
}

// TestCaseB116OutageOfTheProvider: while nobody answers nothing is escalated and questions get rarer; once they answer each is
// resolved once.
func TestCaseB116OutageOfTheProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		var mu sync.Mutex
		var answer onceward.Answer
		down := errors.New("connection refused")
		asked := map[string]int{}
		g, err := onceward.New(mem, &onceward.Options{SingleTenant: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.Define(onceward.Operation{Name: "pay", Resolve: func(_ context.Context, q onceward.Question) (onceward.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[q.Key.Reveal()]++
			return answer, down
		}})
		if err != nil {
			t.Fatal(err)
		}
		const n = 50
		for i := range n {
			unclear(t, mem, fmt.Sprint("k", i))
		}
		most := func() (least, most int) {
			mu.Lock()
			defer mu.Unlock()
			least = 1 << 30
			for i := range n {
				c := asked[fmt.Sprint("k", i)]
				least, most = min(least, c), max(most, c)
			}
			return least, most
		}
		run(t, mem, janitor.Options{Resolver: g}, func(reports func() []janitor.Report) {
			pass(3 * time.Hour)
			for _, r := range reports() {
				if r.Overdue != 0 || r.Resolved != 0 || r.Unknown != n || r.Asked != r.Unanswered {
					t.Fatalf("%+v", r)
				}
			}
			if a, b := most(); a < 5 || b > 15 { // 10 s, 20 s, 40 s … one hour
				t.Errorf("each was asked about %d to %d times in three hours", a, b)
			}
			mu.Lock()
			down = nil
			mu.Unlock()
			pass(time.Hour + time.Minute)
			if r := reports(); r[len(r)-1].Overdue != n {
				t.Errorf("they answer and don't know: %+v", r[len(r)-1])
			}
			_, before := most()
			mu.Lock()
			answer = onceward.Happened(7)
			mu.Unlock()
			pass(time.Hour + time.Minute)
			if a, b := most(); b > before+2 || a < 6 {
				t.Errorf("%d to %d questions", a, b)
			}
			resolved := 0
			for _, r := range reports() {
				resolved += r.Resolved
			}
			if r := reports(); resolved != n || r[len(r)-1].Unknown != 0 || r[len(r)-1].Overdue != 0 {
				t.Errorf("%d resolved, %+v", resolved, r[len(r)-1])
			}
		})
		snap, err := mem.Get(t.Context(), claimOf("k3", 0).ID)
		if err != nil || snap.Record.Status != driver.Success || string(snap.Record.Result.Data) != "7" {
			t.Errorf("%+v %v", snap.Record, err)
		}
	})
}

// TestUnknownWithoutAResolver waits for a person, and is overdue at the alarm age.
func TestUnknownWithoutAResolver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for age, want := range map[time.Duration]int{time.Minute: 0, 2 * time.Hour: 1} {
			s := memstore.New(nil)
			unclear(t, s, "k")
			s.Shift(claimOf("k", 0).ID, age)
			rep, err := janitor.Sweep(t.Context(), s, quiet(janitor.Options{}))
			if err != nil || rep.Unknown != 1 || rep.Overdue != want || rep.OldestUnknown != age {
				t.Errorf("%v: %+v %v", age, rep, err)
			}
		}
	})
}

// TestSilentProviderHoldsNothingUp: dead attempts are settled while questions hang.
func TestSilentProviderHoldsNothingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		for i := range 40 {
			unclear(t, mem, fmt.Sprint("k", i))
		}
		run(t, mem, janitor.Options{Resolver: silent{}}, func(reports func() []janitor.Report) {
			synctest.Wait()
			if _, err := mem.Claim(t.Context(), claimOf("dead", driver.LapseRepeat)); err != nil {
				t.Fatal(err)
			}
			mem.Shift(claimOf("dead", 0).ID, time.Hour)
			pass(6 * time.Second) // less than a question may take
			if r := reports(); len(r) != 2 || r[1].Repeatable != 1 {
				t.Errorf("%+v", r)
			}
		})
	})
}

type silent struct{}

func (silent) Resolve(ctx context.Context, _ driver.Snapshot) (asked, settled bool, err error) {
	<-ctx.Done()
	return true, false, ctx.Err()
}

// TestJanitorBesideCallers: what is expired and claimed anew at that moment is one run more, never two at a time.
func TestJanitorBesideCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		g, err := onceward.New(mem, &onceward.Options{SingleTenant: true})
		if err != nil {
			t.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "pay", Retention: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		k, _ := key.Parse("K")
		run(t, mem, janitor.Options{Every: 10 * time.Millisecond}, func(reports func() []janitor.Report) {
			ran := 0
			for range 100 {
				_, err := onceward.Do(t.Context(), op, onceward.Call{Key: k}, func(context.Context) (int, error) { ran++; return ran, nil })
				if err != nil {
					t.Error(err)
				}
				pass(time.Second + 3*time.Millisecond)
			}
			purged := 0
			for _, r := range reports() {
				purged += r.Purged
			}
			if ran != 100 || purged == 0 || purged > 100 {
				t.Errorf("%d runs, %d purged", ran, purged)
			}
		})
	})
}
