package onceward_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/janitor"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

// put stores a record for the key that no call leaves behind.
func (d *desk) put(t *testing.T, keyText string, change func(*driver.Record)) {
	t.Helper()
	sum, err := fingerprint.Of(7)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := driver.Record{
		ID: idOf(keyText), Operation: "pay", Key: keyText, Status: driver.Processing, Fingerprint: sum, Attempt: 1, Fence: 1, MaxAttempts: 5,
		Owner: driver.Owner{1}, Lease: onceward.DefaultLease, Retention: time.Hour, CreatedAt: now, UpdatedAt: now,
	}
	change(&r)
	d.mem.Put(r)
}

// TestCaseB003NoLeaseIsNotALapsedLease: a record without a deadline is held.
func TestCaseB003NoLeaseIsNotALapsedLease(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{Repeatable: true})
	d.put(t, "K", func(r *driver.Record) { r.OnLapse = driver.LapseRepeat })
	for range 3 {
		if _, info, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrInFlight) || info.RetryAfter != time.Second {
			t.Errorf("%+v %v", info, err)
		}
		d.mem.Shift(idOf("K"), 59*time.Minute)
	}
	if n := d.ledger.Count("K"); n != 0 {
		t.Errorf("ran %d times", n)
	}
}

// TestCaseB017ImpossibleRecords have a code of their own, never "in flight", and run nothing.
func TestCaseB017ImpossibleRecords(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*driver.Record){
		"success without a result": func(r *driver.Record) { r.Status = driver.Success },
		"result of no codec":       func(r *driver.Record) { r.Status, r.Result.Data = driver.Success, []byte(`"paid"`) },
		"result cut short": func(r *driver.Record) {
			r.Status, r.Result.Codec, r.Result.Data = driver.Success, "json", []byte(`"pa`)
		},
		"result of another type": func(r *driver.Record) { r.Status, r.Result.Codec, r.Result.Data = driver.Success, "json", []byte(`{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, onceward.Operation{Repeatable: true})
			d.put(t, "K", func(r *driver.Record) { change(r); r.Owner = driver.Owner{} })
			v, _, err := d.pay(t.Context(), "K", paid)
			if v != "" || !errors.Is(err, onceward.ErrCorruptRecord) || onceward.CodeOf(err).Retry() != onceward.RetryStop || d.ledger.Count("K") != 0 {
				t.Errorf("%q %v, ran %d times", v, err, d.ledger.Count("K"))
			}
		})
	}
}

// TestCaseB017CorruptRecordsAreCounted: the event says so by its code.
func TestCaseB017CorruptRecordsAreCounted(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	d.put(t, "K", func(r *driver.Record) { r.Status = driver.Success })
	_, _, _ = d.pay(t.Context(), "K", paid)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.Kind == onceward.EventDecision && e.Outcome == "corrupt_record" && errors.Is(e.Err, onceward.ErrCorruptRecord) {
			return
		}
	}
	t.Errorf("no such event in %+v", d.events)
}

// TestCaseB018ObedientClientGetsThrough: who honours the hint after a crash runs soon after the lease.
func TestCaseB018ObedientClientGetsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		dead := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		dead.begin(t, "K")
		dead.store.Refuse(faultstore.Renew, -1) // it is dead
		d := newDeskOn(t, mem, onceward.Operation{Repeatable: true})
		start := time.Now()
		var hints []time.Duration // each as long as the attempt has run by then, within its lease
		for {
			left := onceward.DefaultLease - time.Since(start)
			v, info, err := d.pay(t.Context(), "K", paid)
			if err == nil {
				if v != "paid" || !info.Takeover || info.Attempt != 2 {
					t.Errorf("%q %+v", v, info)
				}
				break
			}
			if hints = append(hints, info.RetryAfter); !errors.Is(err, onceward.ErrInFlight) || info.RetryAfter < time.Second || info.RetryAfter > max(left, time.Second) {
				t.Fatalf("%+v %v", info, err)
			}
			pass(info.RetryAfter)
		}
		if took := time.Since(start); took > onceward.DefaultLease*4/3+time.Second || len(hints) > 16 || !slices.Equal(hints[:6], []time.Duration{1e9, 1e9, 2e9, 4e9, 8e9, 14e9}) {
			t.Errorf("told to wait %v, %v in all", hints, took)
		}
		d.ledger.WantOnce(t, "K")
	})
}

// TestCaseB019SweepingBesideLiveWork: a janitor at every millisecond takes nothing from those who live.
func TestCaseB019SweepingBesideLiveWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		d := newDeskOn(t, mem, onceward.Operation{Lease: 200 * time.Millisecond, Repeatable: true})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = d.pay(t.Context(), "K", slow(2*time.Second)) // ten leases
		}()
		settled := 0
		for range 1000 {
			rep, err := janitor.Sweep(t.Context(), mem, nil)
			if err != nil {
				t.Error(err)
			}
			settled += rep.Repeatable + rep.Unclear
			pass(time.Millisecond)
		}
		<-done
		if settled != 0 {
			t.Errorf("%d were settled", settled)
		}
		if v, info, err := d.pay(t.Context(), "K", paid); v != "paid" || err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("%q %+v %v", v, info, err)
		}
		d.ledger.WantOnce(t, "K")
	})
}

// TestCaseB044PassingFailureIsNotPinned, unless the operation asks for it.
func TestCaseB044PassingFailureIsNotPinned(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	for name, o := range map[string]onceward.Operation{"infer": {}, "keep": {OnError: onceward.KeepFailure}} {
		d := newDesk(t, o)
		for range 10 { // more than MaxAttempts: answers don't count
			if _, info, err := d.pay(t.Context(), "K", func(context.Context) (string, error) { return "", busy }); err == nil || err.Error() != "busy" {
				t.Errorf("%s: %+v %v", name, info, err)
			}
		}
		v, info, err := d.pay(t.Context(), "K", paid)
		switch name {
		case "infer":
			if v != "paid" || err != nil || info.Attempt != 11 || d.ledger.Count("K") != 11 {
				t.Errorf("%s: %q %+v %v", name, v, info, err)
			}
		case "keep":
			if info.Kind != onceward.KindReplayFailure || errors.Is(err, busy) || err.Error() != "busy" || d.ledger.Count("K") != 1 {
				t.Errorf("%s: %q %+v %v", name, v, info, err)
			}
		}
	}
}

// TestMaxAttempts: attempts that died are counted, and the last one leaves an unknown outcome.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	mem := memstore.New(nil)
	o := onceward.Operation{Repeatable: true, MaxAttempts: 3}
	for i := range 3 {
		a := newDeskOn(t, mem, o).begin(t, "K") // and dies
		if a.Number() != i+1 || a.Takeover() != (i > 0) {
			t.Errorf("attempt %d is number %d, takeover %v", i+1, a.Number(), a.Takeover())
		}
		mem.Shift(idOf("K"), time.Minute)
	}
	d := newDeskOn(t, mem, o)
	for range 2 {
		_, info, err := d.pay(t.Context(), "K", paid)
		if !errors.Is(err, onceward.ErrUnknown) || !strings.Contains(err.Error(), "attempts exhausted") || info.RetryAfter <= 0 || d.ledger.Count("K") != 0 {
			t.Errorf("%+v %v", info, err)
		}
	}
}

// TestRetention counts from the finish; then the key is new.
func TestRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Retention: time.Hour})
		_, info, err := d.pay(t.Context(), "K", slow(10*time.Minute))
		if want := time.Now().Add(time.Hour); err != nil || !info.ExpiresAt.Equal(want) {
			t.Errorf("expires at %v, want %v: %v", info.ExpiresAt, want, err)
		}
		pass(time.Hour - time.Millisecond)
		if _, info, err := d.pay(t.Context(), "K", paid); err != nil || info.Kind != onceward.KindReplay {
			t.Errorf("before: %+v %v", info, err)
		}
		pass(time.Millisecond)
		if _, info, err := d.pay(t.Context(), "K", paid); err != nil || info.Kind != onceward.KindRun || info.Attempt != 1 {
			t.Errorf("after: %+v %v", info, err)
		}
	})
}

func TestStoreFullRunsNothing(t *testing.T) {
	t.Parallel()
	d := newDeskOn(t, memstore.New(&memstore.Options{MaxRecords: 1}), onceward.Operation{})
	_, _, _ = d.pay(t.Context(), "first", paid)
	if _, _, err := d.pay(t.Context(), "second", paid); !errors.Is(err, onceward.ErrStoreFull) || !errors.Is(err, driver.ErrStoreFull) || d.ledger.Count("second") != 0 {
		t.Errorf("%v", err)
	}
	if n := d.store.Count(faultstore.Claim); n != 2 { // a full store is not asked again
		t.Errorf("%d claims", n)
	}
}

// TestScopesAreApart: one key of two callers is two keys.
func TestScopesAreApart(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	for _, s := range []onceward.Scope{{}, {Tenant: "a"}, {Caller: "a"}, {Namespace: "a"}, {Tenant: "b"}} {
		for range 2 {
			if _, err := onceward.Do(t.Context(), d.op, onceward.Call{Scope: s, Key: k("K")}, func(context.Context) (string, error) {
				d.ledger.Add(s.Namespace + "/" + s.Tenant + "/" + s.Caller)
				return "", nil
			}); err != nil {
				t.Error(err)
			}
		}
	}
	d.ledger.WantOnce(t, "//", "/a/", "//a", "a//", "/b/")
}
