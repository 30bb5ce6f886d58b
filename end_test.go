package onceward_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

func idOf(keyText string) driver.ID { return driver.Identify(driver.Scope{}, "pay", keyText) }

// begin claims the key, as a process that may die before it ends the attempt.
func (d *desk) begin(t *testing.T, keyText string) *onceward.Attempt {
	t.Helper()
	got, err := d.Begin(t.Context(), d.op, onceward.Call{Key: k(keyText), Request: 7})
	if err != nil || got.Kind != onceward.KindRun {
		t.Fatalf("%v %v", got.Kind, err)
	}
	return got.Attempt
}

func TestHeartbeatStopsAtTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		d, other := newDeskOn(t, mem, onceward.Operation{Timeout: time.Minute}), newDeskOn(t, mem, onceward.Operation{})
		v, info, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			beats := d.store.Count(faultstore.Renew)
			if beats < 5 || beats > 6 || d.count(onceward.EventTimeout) != 1 {
				t.Errorf("%d heartbeats, %d timeouts", beats, d.count(onceward.EventTimeout))
			}
			if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrInFlight) {
				t.Errorf("before the lapse: %v", err)
			}
			pass(10 * time.Minute)
			if n := d.store.Count(faultstore.Renew); n != beats {
				t.Errorf("%d heartbeats after the timeout", n-beats)
			}
			for _, desk := range []*desk{d, other} { // this process has no better knowledge any more
				if _, _, err := desk.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrUnknown) {
					t.Errorf("after the lapse: %v", err)
				}
			}
			return "late", nil
		})
		// Nobody claimed: late truth replaces the unknown.
		if v != "late" || err != nil || !info.Recorded {
			t.Errorf("%q %+v %v", v, info, err)
		}
		if v, info, err := other.pay(t.Context(), "K", paid); v != "late" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("a duplicate: %q %+v %v", v, info, err)
		}
	})
}

// TestLateEndIsSuperseded: a late end gives the caller what the winner left, or says that another attempt took over.
func TestLateEndIsSuperseded(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	for _, c := range []struct {
		name      string
		late      error
		winner    func(context.Context) (string, error) // nil: still running
		wantValue string
		wantErr   error
		wantText  string
		wantKind  onceward.Kind
	}{
		{"success after success", nil, func(context.Context) (string, error) { return "winner", nil }, "winner", nil, "", onceward.KindReplay},
		{"failure after success", busy, func(context.Context) (string, error) { return "winner", nil }, "winner", nil, "", onceward.KindReplay},
		{"success after failure", nil, func(context.Context) (string, error) { return "", onceward.Final(errors.New("no money")) }, "", nil, "no money", onceward.KindReplayFailure},
		{"failure after failure", busy, func(context.Context) (string, error) { return "", onceward.Final(errors.New("no money")) }, "", busy, "no money", onceward.KindReplayFailure},
		{"success after nothing", nil, func(context.Context) (string, error) { return "", busy }, "", onceward.ErrSuperseded, "", onceward.KindSuperseded},
		{"success while running", nil, nil, "", onceward.ErrSuperseded, "", onceward.KindSuperseded},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(nil)
				d := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
				other := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
				d.store.Refuse(faultstore.Renew, -1)
				v, info, err := d.pay(t.Context(), "K", func(context.Context) (string, error) {
					pass(time.Minute)
					if c.winner == nil {
						other.begin(t, "K")
					} else {
						_, _, _ = other.pay(t.Context(), "K", c.winner)
					}
					return "late", c.late
				})
				if v != c.wantValue || info.Kind != c.wantKind || (err == nil) != (c.wantErr == nil && c.wantText == "") || c.wantErr != nil && !errors.Is(err, c.wantErr) {
					t.Errorf("%q %+v %v", v, info, err)
				}
				if n := d.count(onceward.EventContradiction); n != 0 {
					t.Errorf("%d alarms, and nobody resolved anything", n)
				}
				var final *onceward.FinalError
				if c.wantText != "" && (!errors.As(err, &final) || final.Text != c.wantText) {
					t.Errorf("%v, want the winner's %q", err, c.wantText)
				}
				if errors.Is(err, onceward.ErrSuperseded) && info.RetryAfter < time.Second {
					t.Errorf("retry after %v", info.RetryAfter)
				}
			})
		})
	}
}

// TestContradictionIsAnAlarm: late truth that differs from what a person said is counted, and never wins.
func TestContradictionIsAnAlarm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"paid": 0, "another": 1} {
		d := newDesk(t, onceward.Operation{Codec: onceward.Raw{}})
		a := d.begin(t, "K")
		d.mem.Shift(idOf("K"), time.Hour)
		if s, err := d.mem.Settle(t.Context(), driver.Settlement{ID: idOf("K"), Fence: a.Fence()}); err != nil || !s.Applied {
			t.Fatalf("%+v %v", s, err)
		}
		resolved := driver.Outcome{Status: driver.Success, Result: onceward.Result{Codec: "raw", Data: []byte("paid")}}
		s, err := d.mem.Settle(t.Context(), driver.Settlement{ID: idOf("K"), Fence: a.Fence(), Outcome: resolved, Resolution: "asked the bank", Owner: driver.Owner{1}})
		if err != nil || !s.Applied {
			t.Fatalf("%+v %v", s, err)
		}
		end, err := a.Succeed(t.Context(), onceward.Result{Codec: "raw", Data: []byte(text)})
		if err != nil || !end.Superseded || end.Decision.Kind != onceward.KindReplay || string(end.Decision.Result.Data) != "paid" {
			t.Errorf("%s: %+v %v", text, end, err)
		}
		if n := d.count(onceward.EventContradiction); n != want {
			t.Errorf("%s: %d alarms", text, n)
		}
	}
}

// TestContradictionAfterAnotherRun: somebody said that nothing happened, it was run again, and then the first run says that
// it did. Money moved twice: the alarm does not depend on whether the resolution still stands in the record.
func TestContradictionAfterAnotherRun(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]onceward.Operation{"not repeatable": {Codec: onceward.Raw{}}, "repeatable": {Codec: onceward.Raw{}, Repeatable: true}} {
		d := newDesk(t, o)
		a := d.begin(t, "K")
		d.mem.Shift(idOf("K"), time.Hour)
		if _, err := d.mem.Settle(t.Context(), driver.Settlement{ID: idOf("K"), Fence: a.Fence()}); err != nil {
			t.Fatal(err)
		}
		if !o.Repeatable {
			no := driver.Outcome{Status: driver.Fail, Failure: driver.Retryable}
			if s, err := d.mem.Settle(t.Context(), driver.Settlement{ID: idOf("K"), Fence: a.Fence(), Outcome: no, Resolution: "did not", Owner: driver.Owner{1}}); err != nil || !s.Applied {
				t.Fatalf("%+v %v", s, err)
			}
		}
		other := newDeskOn(t, d.mem, o)
		if v, _, err := other.pay(t.Context(), "K", paid); v != "paid" || err != nil {
			t.Fatalf("%s: %q %v", name, v, err)
		}
		end, err := a.Succeed(t.Context(), onceward.Result{Codec: "raw", Data: []byte("it did happen")})
		if err != nil || !end.Superseded || (d.count(onceward.EventContradiction) == 1) == o.Repeatable {
			t.Errorf("%s: %+v %v, %d alarms", name, end, err, d.count(onceward.EventContradiction))
		}
	}
}

// TestFailureThatDoesNotExist is taken for unknown.
func TestFailureThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, kind := range []driver.Failure{0, driver.Unknown + 1} {
		d := newDesk(t, onceward.Operation{})
		if end, err := d.begin(t, "K").Fail(t.Context(), kind, nil, onceward.Result{}); err != nil || !end.Recorded {
			t.Errorf("%+v %v", end, err)
		}
		if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("%v", err)
		}
	}
}

func TestAttemptEndsOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	a := d.begin(t, "K")
	if from, ok := onceward.FromContext(a.Context()); !ok || from != a {
		t.Error("the context does not know its attempt")
	}
	if _, ok := onceward.FromContext(t.Context()); ok || onceward.CallerGone(t.Context()) != nil {
		t.Error("an attempt out of nowhere")
	}
	if a.Number() != 1 || a.Takeover() || a.Bypassed() || a.Fence() == 0 {
		t.Errorf("%d %v %v %d", a.Number(), a.Takeover(), a.Bypassed(), a.Fence())
	}
	if end, err := a.Succeed(t.Context(), onceward.Result{}); err != nil || !end.Recorded {
		t.Errorf("%+v %v", end, err)
	}
	if _, err := a.Fail(t.Context(), driver.Retryable, nil, onceward.Result{}); !errors.Is(err, onceward.ErrAttemptEnded) {
		t.Errorf("a second end: %v", err)
	}
	if a.Context().Err() == nil {
		t.Error("the context outlives its attempt")
	}
}

// TestWhatAnEndLeaves: no bytes are a result, and a failure that is not final leaves none.
func TestWhatAnEndLeaves(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{Codec: onceward.Raw{}})
	if _, err := d.begin(t, "empty").Succeed(t.Context(), onceward.Result{Codec: "raw"}); err != nil {
		t.Error(err)
	}
	if v, info, err := d.pay(t.Context(), "empty", paid); v != "" || err != nil || info.Kind != onceward.KindReplay {
		t.Errorf("%q %+v %v", v, info, err)
	}
	for kind, want := range map[driver.Failure]int{driver.Retryable: 0, driver.Unknown: 0, driver.Final: 2} {
		name := kind.String()
		if _, err := d.begin(t, name).Fail(t.Context(), kind, errNoMoney, onceward.Result{Codec: "raw", Data: []byte("no")}); err != nil {
			t.Error(err)
		}
		if s, err := d.mem.Get(t.Context(), idOf(name)); err != nil || len(s.Record.Result.Data) != want || s.Record.Error != "no money" {
			t.Errorf("%s: %+v %v", name, s.Record, err)
		}
	}
}

// deaf is an error whose typed nil pointer panics when it is read: the classic trap.
type deaf struct{ text string }

func (d *deaf) Error() string { return d.text }

// TestCaseB013NoEndLeavesTheKeyInFlight, however the work leaves.
func TestCaseB013NoEndLeavesTheKeyInFlight(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(context.Context) (string, error){
		"panic":           func(context.Context) (string, error) { panic("broken") },
		"Goexit":          func(context.Context) (string, error) { runtime.Goexit(); return "", nil },
		"typed nil error": func(context.Context) (string, error) { var d *deaf; return "", d },
	} {
		for _, repeatable := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " repeatable ", repeatable), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, onceward.Operation{Repeatable: repeatable})
				var wg sync.WaitGroup
				wg.Go(func() { // of its own: Goexit ends it
					defer func() { _ = recover() }()
					_, _, _ = d.pay(t.Context(), "K", work)
					t.Error("the work's way out was swallowed")
				})
				wg.Wait()
				v, _, err := d.pay(t.Context(), "K", paid)
				if repeatable && (v != "paid" || err != nil) || !repeatable && !errors.Is(err, onceward.ErrUnknown) {
					t.Errorf("%q %v", v, err)
				}
				if n := d.InAir(); n != 0 {
					t.Errorf("%d flights are left", n)
				}
			})
		}
	}
}

// TestUnrecordedBytesAreBounded: results above the limit are given up, at once and loudly.
func TestUnrecordedBytesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := faultstore.New(memstore.New(nil))
		given := 0
		g, err := onceward.New(store, &onceward.Options{
			SingleTenant: true, MaxUnrecorded: 2, MaxUnrecordedBytes: 29, Logger: slog.New(slog.NewJSONHandler(&log, nil)), FinishGrace: 100 * time.Millisecond,
			Observer: func(e onceward.Event) {
				if e.Kind == onceward.EventGivenUp {
					given++
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "pay", Codec: onceward.Raw{}})
		if err != nil {
			t.Fatal(err)
		}
		store.Refuse(faultstore.Finish, -1)
		for i := range 3 {
			var info onceward.Info
			v, err := onceward.Do(t.Context(), op, onceward.Call{Key: k(fmt.Sprint("secret-", i)), Info: &info}, func(context.Context) (string, error) { return "ten bytes.", nil })
			if v != "ten bytes." || err != nil || info.Recorded {
				t.Errorf("%d: %q %+v %v", i, v, info, err)
			}
		}
		if given != 1 || strings.Count(log.String(), "\n") != 1 || strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), k("secret-2").Digest()) {
			t.Errorf("%d given up, log %s", given, log.String())
		}
		store.Refuse(faultstore.Finish, 0)
		pass(2 * time.Second)
		store.Refuse(faultstore.Finish, -1)
		for i := range 2 { // what was written has left its place
			_, _ = onceward.Do(t.Context(), op, onceward.Call{Key: k(fmt.Sprint("later-", i))}, func(context.Context) (string, error) { return "ten bytes.", nil })
		}
		if given != 1 {
			t.Errorf("%d given up in the end", given)
		}
		store.Refuse(faultstore.Finish, 0)
		if lost, err := g.Close(t.Context()); lost != 0 || err != nil {
			t.Errorf("%d %v", lost, err)
		}
	})
}

// TestCourtesyTakesNoResultsPlace: claims to be given back don't crowd out results to be written.
func TestCourtesyTakesNoResultsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Codec: onceward.Raw{}}) // places for two
		a, b := d.begin(t, "A"), d.begin(t, "B")
		d.store.Refuse(faultstore.Claim, -1)
		d.store.Refuse(faultstore.Finish, -1)
		for i := range 4 {
			if _, _, err := d.pay(t.Context(), fmt.Sprint("K", i), paid); !errors.Is(err, onceward.ErrStoreUnavailable) {
				t.Errorf("%v", err)
			}
		}
		for _, attempt := range []*onceward.Attempt{a, b} {
			if end, err := attempt.Succeed(t.Context(), onceward.Result{Codec: "raw", Data: []byte("paid")}); err != nil || end.Recorded {
				t.Errorf("%+v %v", end, err)
			}
		}
		if n := d.count(onceward.EventGivenUp); n != 0 {
			t.Errorf("%d results were given up", n)
		}
		d.store.Refuse(faultstore.Claim, 0)
		d.store.Refuse(faultstore.Finish, 0)
		if lost, err := d.Close(t.Context()); lost != 0 || err != nil {
			t.Errorf("%d %v", lost, err)
		}
		if s, err := d.mem.Get(t.Context(), idOf("B")); err != nil || s.Record.Status != driver.Success {
			t.Errorf("%v %v", s.Record.Status, err)
		}
	})
}

// TestCloseOfAnIdleGuard is no error, even without time.
func TestCloseOfAnIdleGuard(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // a select would choose either
		if lost, err := newGuard(t).Close(ctx); lost != 0 || err != nil {
			t.Fatalf("%d %v", lost, err)
		}
	}
}

// TestCloseEndsCourtesies: claims to be given back don't outlive the guard, are no attempts, and hold a close up only briefly.
func TestCloseEndsCourtesies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		d.store.Refuse(faultstore.Claim, -1)
		d.store.Refuse(faultstore.Get, -1)
		_, _, _ = d.pay(t.Context(), "K", paid)
		start := time.Now()
		if lost, err := d.Close(t.Context()); lost != 0 || err != nil {
			t.Errorf("%d %v", lost, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("closed after %v", took)
		}
		asked := d.store.Count(faultstore.Get)
		pass(time.Minute)
		if n := d.store.Count(faultstore.Get); asked == 0 || n != asked {
			t.Errorf("asked %d times, %d times afterwards", asked, n-asked)
		}
	})
}

// TestCloseCancelsWhatItGivesUp: the work hears why.
func TestCloseCancelsWhatItGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), onceward.ErrClosed) {
					t.Errorf("%v", context.Cause(ctx))
				}
				return "", ctx.Err()
			})
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if lost, err := d.Close(ctx); lost != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d %v", lost, err)
		}
		wg.Wait()
		if lost, err := d.Close(t.Context()); lost != 0 || err != nil {
			t.Errorf("again: %d %v", lost, err)
		}
	})
}
