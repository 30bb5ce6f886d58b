package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/faultstore"
)

// TestCaseB009EveryWayToEnd: a duplicate, in this process or another, gets the result, another run, or "unknown"; a key
// is in flight for no longer than the lease and its grace.
func TestCaseB009EveryWayToEnd(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte{'m', 0, 0xff, '\n'}, 1<<18)
	onEveryStore(t, func(w *world) {
		for _, repeatable := range []bool{false, true} {
			ps := w.processes(2, onceward.Operation{Repeatable: repeatable})
			for name, work := range map[string]func() ([]byte, error){
				"no bytes":       func() ([]byte, error) { return []byte{}, nil },
				"nil":            func() ([]byte, error) { return nil, nil },
				"1 MiB":          func() ([]byte, error) { return big, nil },
				"panic":          func() ([]byte, error) { panic("broken") },
				"Goexit":         func() ([]byte, error) { runtime.Goexit(); return nil, nil },
				"error":          func() ([]byte, error) { return nil, errors.New("busy") },
				"unknown":        func() ([]byte, error) { return nil, context.DeadlineExceeded },
				"killed":         nil,
				"killed and old": nil,
			} {
				keyText := fmt.Sprint(name, " repeatable ", repeatable)
				var first []byte
				ended := make(chan struct{})
				go func() { // of its own: Goexit ends it
					defer close(ended)
					defer func() { _ = recover() }()
					if work != nil {
						first, _ = onceward.Do(w.Context(), ps[0].op, onceward.Call{Key: k(keyText), Request: payments}, func(context.Context) ([]byte, error) { return work() })
					}
				}()
				<-ended
				if work == nil {
					w.leaveDead(keyText, onceward.Operation{Repeatable: repeatable, Retention: 72 * time.Hour})
					w.wantRefused(onceward.ErrInFlight, ps[1].pay(keyText, nil))
					w.shift(keyText, onceward.DefaultLease+onceward.DefaultLease/3)
					if name == "killed and old" {
						w.shift(keyText, 1000*time.Hour)
					}
				}
				a := ps[1].pay(keyText, nil)
				switch name {
				case "no bytes", "nil", "1 MiB":
					w.wantReplay(first, a)
					if name == "1 MiB" && !bytes.Equal(a.body, big) {
						w.Errorf("%d bytes of %d", len(a.body), len(big))
					}
				case "panic", "Goexit", "unknown", "killed", "killed and old":
					if !repeatable {
						w.wantRefused(onceward.ErrUnknown, a)
						w.wantRefused(onceward.ErrUnknown, ps[0].pay(keyText, nil))
						continue
					}
					w.wantRun(2, a)
				case "error":
					w.wantRun(2, a)
				}
				w.wantReplay(a.body, ps[0].pay(keyText, nil))
			}
		}
	})
}

// TestCaseB009HandlersEnds: every way in which a handler may answer is recorded.
func TestCaseB009HandlersEnds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f.txt")
	if err := os.WriteFile(file, []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("mega"), 1<<18)
	onEveryStore(t, func(w *world) {
		for name, c := range map[string]struct {
			handler http.HandlerFunc
			body    string
		}{
			"writes nothing": {func(http.ResponseWriter, *http.Request) {}, ""},
			"serves a file":  {func(rw http.ResponseWriter, r *http.Request) { http.ServeFile(rw, r, file) }, "file"},
			"copies 1 MiB": {func(rw http.ResponseWriter, _ *http.Request) {
				_, _ = bytes.NewReader(big).WriteTo(rw)
			}, string(big)},
		} {
			sites := []*site{w.site(&oncehttp.Options{MaxResult: 2 << 20}, c.handler), w.site(&oncehttp.Options{MaxResult: 2 << 20}, c.handler)}
			first := sites[0].post("/x", name, "x")
			if first.Code != 200 || first.Body.String() != c.body {
				w.Errorf("%s: %d, %d bytes", name, first.Code, first.Body.Len())
			}
			for _, s := range sites {
				w.wantSame(first, s.post("/x", name, "x"))
			}
			w.wantRuns("POST /x "+name, 1)
		}
	})
}

// lossy is a store that can't keep results. A key could be freed in it, but never is: the work has run.
type lossy struct{ driver.Store }

func (l lossy) Finish(ctx context.Context, f driver.Finish) (driver.Finished, error) {
	if f.Outcome.Status == driver.Success {
		return driver.Finished{}, faultstore.Err
	}
	return l.Store.Finish(ctx, f)
}

// TestCaseB009FinishThatFails is made again; and a result that can't be written leaves a key that lapses.
func TestCaseB009FinishThatFails(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		other := w.process(onceward.Operation{Repeatable: true})
		for name, fault := range map[string]func(*faultstore.Store){
			"refused":    func(s *faultstore.Store) { s.Refuse(faultstore.Finish, 2) },
			"reply lost": func(s *faultstore.Store) { s.Lose(faultstore.Finish, 2) },
		} {
			p := w.process(onceward.Operation{Repeatable: true})
			fault(p.store)
			first := p.pay(name, nil)
			w.wantRun(1, first)
			w.wantReplay(first.body, other.pay(name, nil))
			if n := p.store.Count(faultstore.Finish); n != 3 {
				w.Errorf("%s: %d finishes", name, n)
			}
			w.wantRuns(name, 1)
		}

		p := w.processOn(lossy{w.stores[0]}, onceward.Operation{Repeatable: true}, onceward.Options{SingleTenant: true, FinishGrace: 100 * time.Millisecond})
		first := p.pay("never", nil)
		if first.err != nil || first.info.Recorded || len(first.body) == 0 {
			w.Errorf("unrecorded: %v", first)
		}
		p.die() // gives the result up
		w.wantRefused(onceward.ErrInFlight, other.pay("never", nil))
		w.shift("never", onceward.DefaultLease+onceward.DefaultLease/3)
		second := other.pay("never", nil)
		w.wantRun(2, second)
		if !second.info.Takeover || bytes.Equal(first.body, second.body) {
			w.Errorf("%v after %v", second, first)
		}
		w.wantRuns("never", 2)
	})
}

// TestCaseB011NoTimeIsATime: a lease of nothing is a lease that is over, not a missing one, and a caller whose time is over
// leaves no record.
func TestCaseB011NoTimeIsATime(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		p := w.process(onceward.Operation{Repeatable: true})
		for _, left := range []time.Duration{0, -5 * time.Millisecond} {
			keyText := fmt.Sprint("lease ", left)
			w.leaveDead(keyText, onceward.Operation{Repeatable: true}) // for its fingerprint and policies
			dead := w.record(keyText)
			w.shift(keyText, time.Minute)
			c := driver.Claim{
				ID: dead.ID, Operation: "pay", Key: keyText, Fingerprint: dead.Fingerprint, Owner: driver.Owner{9},
				Lease: left, Timeout: time.Hour, Retention: time.Hour, MaxAttempts: 5, OnLapse: driver.LapseRepeat,
			}
			got, err := w.stores[0].Claim(w.Context(), c)
			if err != nil || got.Verdict != driver.GotClaim {
				w.Fatalf("%s: %+v %v", keyText, got, err)
			}
			if r := w.record(keyText); r.LeaseUntil.IsZero() || r.LeaseUntil.After(got.Now) {
				w.Errorf("%s: lease until %v, claimed at %v", keyText, r.LeaseUntil, got.Now)
			}
			w.wantRun(3, p.pay(keyText, nil))

			keyText = fmt.Sprint("caller ", left)
			ctx, cancel := context.WithDeadline(w.Context(), time.Now().Add(left))
			a := p.do(ctx, keyText, payments, nil)
			cancel()
			if !errors.Is(a.err, context.DeadlineExceeded) {
				w.Errorf("%s: %v", keyText, a)
			}
			if _, err := w.stores[0].Get(w.Context(), idOf(keyText)); !errors.Is(err, driver.ErrNotFound) {
				w.Errorf("%s left a record: %v", keyText, err)
			}
			w.wantRuns(keyText, 0)
			w.wantRun(1, p.pay(keyText, nil))
		}
	})
}

// TestCaseB013TheEndIsWrittenBeforeTheCallReturns: by the policy, and at once.
func TestCaseB013TheEndIsWrittenBeforeTheCallReturns(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	onEveryStore(t, func(w *world) {
		for name, c := range map[string]struct {
			o      onceward.Operation
			during func(context.Context) error
			left   driver.Failure
		}{
			"panic":              {onceward.Operation{}, func(context.Context) error { panic(broken) }, driver.Unknown},
			"panic, repeatable":  {onceward.Operation{Repeatable: true}, func(context.Context) error { panic(broken) }, driver.Retryable},
			"error, released":    {onceward.Operation{}, func(context.Context) error { return broken }, driver.Retryable},
			"error, stored":      {onceward.Operation{OnError: onceward.KeepFailure}, func(context.Context) error { return broken }, driver.Final},
			"error, strict":      {onceward.Operation{OnError: onceward.Strict}, func(context.Context) error { return broken }, driver.Unknown},
			"the caller is told": {onceward.Operation{}, func(context.Context) error { return onceward.Unknown(broken) }, driver.Unknown},
		} {
			ps := w.processes(2, c.o)
			func() {
				defer func() { _ = recover() }()
				if a := ps[0].pay(name, c.during); !errors.Is(a.err, broken) {
					w.Errorf("%s: the first caller got %v", name, a)
				}
			}()
			if r := w.record(name); r.Status != driver.Fail || r.Failure != c.left {
				w.Errorf("%s left %v %v, want %v", name, r.Status, r.Failure, c.left)
			}
			second := ps[1].pay(name, nil)
			runs := 1
			switch c.left {
			case driver.Retryable:
				w.wantRun(2, second)
				runs = 2
			case driver.Unknown:
				w.wantRefused(onceward.ErrUnknown, second)
			case driver.Final:
				var final *onceward.FinalError
				if !errors.As(second.err, &final) || final.Text != "broken" || second.info.Kind != onceward.KindReplayFailure {
					w.Errorf("%s: %v", name, second)
				}
			}
			w.wantRuns(name, runs)
		}
	})
}

// TestCaseB015CloseLetsResultsLand: a guard that closes waits for its work and for the write of its result.
func TestCaseB015CloseLetsResultsLand(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		s := w.stopped("K", false)
		a := w.processOn(s, onceward.Operation{}, onceward.Options{SingleTenant: true})
		entered, release := make(chan struct{}), make(chan struct{})
		var first answer
		var wg sync.WaitGroup
		wg.Go(func() {
			first = a.pay("K", func(context.Context) error { close(entered); <-release; return nil })
		})
		w.wait(entered)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if lost, err := a.Close(w.Context()); lost != 0 || err != nil {
				w.Errorf("%d results lost, %v", lost, err)
			}
		}()
		for n := 0; ; n++ { // until it refuses
			late := a.pay(fmt.Sprint("late", n), func(context.Context) error { return errors.New("before the close") })
			if errors.Is(late.err, onceward.ErrClosed) {
				break
			}
			runtime.Gosched()
		}
		close(release)
		w.wait(s.reached)
		select {
		case <-closed:
			w.Error("closed before the result was written")
		default:
		}
		close(s.open)
		w.wait(closed)
		wg.Wait()
		w.wantRun(1, first)
		w.wantReplay(first.body, w.process(onceward.Operation{}).pay("K", nil))
		w.wantRuns("K", 1)
	})
}

// TestCaseB015PastTheGrace: work that did not end in time is told so, and its key lapses; its late truth is taken unless
// somebody ran meanwhile.
func TestCaseB015PastTheGrace(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(w *world) {
		for _, repeatable := range []bool{false, true} {
			keyText := fmt.Sprint("repeatable ", repeatable)
			o := onceward.Operation{Repeatable: repeatable}
			a, b := w.process(o), w.process(o)
			entered, release := make(chan struct{}), make(chan struct{})
			var late answer
			var wg sync.WaitGroup
			wg.Go(func() {
				late = a.pay(keyText, func(ctx context.Context) error {
					close(entered)
					w.wait(ctx.Done())
					<-release
					if !errors.Is(context.Cause(ctx), onceward.ErrClosed) {
						w.Errorf("cancelled by %v", context.Cause(ctx))
					}
					return nil
				})
			})
			w.wait(entered)
			a.die()
			if r := w.record(keyText); r.Status != driver.Processing || r.LeaseUntil.IsZero() {
				w.Errorf("%+v", r)
			}
			w.wantRefused(onceward.ErrInFlight, b.pay(keyText, nil))
			w.shift(keyText, time.Minute)
			second := b.pay(keyText, nil)
			close(release)
			wg.Wait()
			if repeatable {
				w.wantRun(2, second)
				w.wantReplay(second.body, late)
				w.wantReplay(second.body, b.pay(keyText, nil))
				w.wantRuns(keyText, 2)
			} else {
				w.wantRefused(onceward.ErrUnknown, second)
				w.wantRun(1, late)
				w.wantReplay(late.body, b.pay(keyText, nil))
				w.wantRuns(keyText, 1)
			}
		}
	})
}

// TestCaseB017ImpossibleRecords have a code of their own, never "in flight", and run nothing.
func TestCaseB017ImpossibleRecords(t *testing.T) {
	t.Parallel()
	success := func(codec, data string) driver.Outcome {
		return driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: codec, Data: []byte(data)}}
	}
	onEveryStore(t, func(w *world) {
		p := w.process(onceward.Operation{Repeatable: true, Codec: onceward.JSON{}})
		noResult := success("json", "")
		noResult.Result.Data = nil
		for name, o := range map[string]driver.Outcome{
			"no result":       noResult,
			"no codec":        success("", `"cGFpZA=="`),
			"another codec":   success("raw", `"cGFpZA=="`),
			"no bytes":        success("json", ""),
			"cut short":       success("json", `"cGFp`),
			"of another type": success("json", `{}`),
		} {
			w.plant(name, o)
			for range 2 {
				a := p.pay(name, nil)
				w.wantRefused(onceward.ErrCorruptRecord, a)
				if onceward.CodeOf(a.err).Retry() != onceward.RetryStop {
					w.Errorf("%s: %v", name, a)
				}
			}
			w.wantRuns(name, 0)
		}
		w.plant("whole", success("json", `"cGFpZA=="`)) // the others differ from it by what their names say
		w.wantReplay([]byte("paid"), p.pay("whole", nil))
		if n, _ := p.heard(onceward.EventDecision, string(onceward.CodeCorruptRecord)); n != 2 {
			w.Errorf("counted %d times, want each of the two calls that found no result", n)
		}
	})
}
