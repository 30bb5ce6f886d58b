package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

var errNoMoney = errors.New("no money")

// TestFinalErrorIsTheSameForEverybody: the first caller keeps the cause, duplicates have its text.
func TestFinalErrorIsTheSameForEverybody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", driver.MaxError)
	for _, c := range []struct{ name, in, out string }{
		{"short", "no money", "no money"},
		{"long", long, long[:driver.MaxError]},
		{"cut inside a rune", "x" + long, "x" + long[:driver.MaxError-2]},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"NUL", "a\x00b", "a\uFFFDb"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, onceward.Operation{})
			cause := errors.New(c.in)
			for i := range 3 {
				_, info, err := d.pay(t.Context(), "K", func(context.Context) (string, error) { return "", onceward.Final(cause) })
				var final *onceward.FinalError
				if !errors.As(err, &final) || final.Text != c.out || err.Error() != c.out {
					t.Errorf("call %d: %v", i, err)
				}
				if errors.Is(err, cause) != (i == 0) || (info.Kind == onceward.KindRun) != (i == 0) || !info.Recorded {
					t.Errorf("call %d: %+v %v", i, info, err)
				}
			}
			d.ledger.WantOnce(t, "K")
		})
	}
}

func TestCutKeepsShortTextAsItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, out string
		n       int
	}{{"abc", "abc", 3}, {"abcd", "abc", 3}, {"", "", 0}, {"é", "", 1}, {"aé", "a", 2}, {"\xff", "", 2}} {
		if got := onceward.Cut(c.in, c.n); got != c.out {
			t.Errorf("%q to %d: %q, want %q", c.in, c.n, got, c.out)
		}
	}
}

func TestUnknownIsSaidToEverybody(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{Repeatable: true}) // what the work says goes above the policy
	for i := range 3 {
		_, _, err := d.pay(t.Context(), "K", func(context.Context) (string, error) { return "", onceward.Unknown(errNoMoney) })
		var e *onceward.Error
		if !errors.As(err, &e) || e.Code != onceward.CodeOutcomeUnknown || e.RetryAfter < time.Second || e.Code.Retry() != onceward.RetrySameKey || errors.Is(err, errNoMoney) != (i == 0) || !strings.Contains(err.Error(), "no money") {
			t.Errorf("call %d: %v", i, err)
		}
	}
	d.ledger.WantOnce(t, "K")
}

// TestNestedUnknown: work that calls guarded work which cannot tell cannot tell either.
func TestNestedUnknown(t *testing.T) {
	t.Parallel()
	inner := newDesk(t, onceward.Operation{})
	_, _, _ = inner.pay(t.Context(), "K", func(context.Context) (string, error) { return "", onceward.Unknown(errNoMoney) })
	d := newDesk(t, onceward.Operation{})
	for range 2 {
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			v, _, err := inner.pay(ctx, "K", paid)
			return v, err
		})
		if !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("%v", err)
		}
	}
	d.ledger.WantOnce(t, "K")
}

func TestNilStaysNil(t *testing.T) {
	t.Parallel()
	if onceward.Retryable(nil) != nil || onceward.Final(nil) != nil || onceward.Unknown(nil) != nil || onceward.CodeOf(nil) != "" {
		t.Error("nil became an error")
	}
	if err := fmt.Errorf("x: %w", onceward.Retryable(errNoMoney)); err.Error() != "x: no money" || !errors.Is(err, errNoMoney) {
		t.Errorf("%v", err)
	}
	if errors.Is(onceward.ErrMismatch, onceward.ErrInFlight) || onceward.CodeOf(fmt.Errorf("x: %w", onceward.ErrMismatch)) != onceward.CodeMismatch {
		t.Error("codes are not compared")
	}
}

// TestNoErrorTellsAKey: keys can be secrets.
func TestNoErrorTellsAKey(t *testing.T) {
	t.Parallel()
	const secret = "sk_live_4711"
	synctest.Test(t, func(t *testing.T) {
		seen := map[onceward.Code]bool{}
		check := func(err error) {
			t.Helper()
			if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%+v %#v", err, err), secret) {
				t.Errorf("%v", err)
			}
			seen[onceward.CodeOf(err)] = true
		}
		do := func(d *desk, request any, scope onceward.Scope) error {
			_, err := onceward.Do(t.Context(), d.op, onceward.Call{Key: k(secret), Request: request, Scope: scope}, paid)
			return err
		}
		d := newDesk(t, onceward.Operation{})
		_, _, _ = d.pay(t.Context(), secret, func(ctx context.Context) (string, error) {
			check(do(d, 7, onceward.Scope{}))
			return "paid", nil
		})
		check(do(d, 8, onceward.Scope{}))
		check(do(d, 7, onceward.Scope{Tenant: strings.Repeat("x", 300)}))
		check(do(d, func() {}, onceward.Scope{Caller: "f"}))
		corrupt := newDesk(t, onceward.Operation{})
		corrupt.put(t, secret, func(r *driver.Record) { r.Status = driver.Success })
		check(do(corrupt, 7, onceward.Scope{}))
		full := newDeskOn(t, memstore.New(&memstore.Options{MaxRecords: 1}), onceward.Operation{})
		_ = do(full, 7, onceward.Scope{Caller: "f"})
		check(do(full, 7, onceward.Scope{}))
		down := newDesk(t, onceward.Operation{})
		down.store.Refuse(faultstore.Claim, -1)
		check(do(down, 7, onceward.Scope{}))
		_, _ = down.Close(t.Context())
		check(do(down, 7, onceward.Scope{}))
		reject := newDesk(t, onceward.Operation{OnDuplicate: onceward.Reject})
		_ = do(reject, 7, onceward.Scope{})
		check(do(reject, 7, onceward.Scope{}))
		for _, c := range []onceward.Code{"", "in_flight", "mismatch", "key_invalid", "corrupt_record", "store_full", "store_unavailable", "duplicate"} {
			if !seen[c] {
				t.Errorf("%q was not seen", c)
			}
		}
	})
}

// TestRejectKnowsFailuresToo: a finished key is a duplicate, whatever its end.
func TestRejectKnowsFailuresToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{OnDuplicate: onceward.Reject})
	_, _, first := d.pay(t.Context(), "K", func(context.Context) (string, error) { return "", onceward.Final(errNoMoney) })
	_, info, err := d.pay(t.Context(), "K", paid)
	if !errors.Is(first, errNoMoney) || !errors.Is(err, onceward.ErrDuplicate) || info.Kind != onceward.KindDuplicate {
		t.Errorf("%v, then %+v %v", first, info, err)
	}
	d.ledger.WantOnce(t, "K")
}
