package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

// TestWhatAnErrorMeans: every class of error under every policy.
func TestWhatAnErrorMeans(t *testing.T) {
	t.Parallel()
	plain := errors.New("no such product")
	for _, c := range []struct {
		name                                 string
		err                                  error
		infer, keep, strict, repeatableInfer driver.Failure
	}{
		{"plain", plain, driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"wrapped plain", fmt.Errorf("x: %w", plain), driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"Retryable", onceward.Retryable(plain), driver.Retryable, driver.Retryable, driver.Retryable, driver.Retryable},
		{"Final", onceward.Final(plain), driver.Final, driver.Final, driver.Final, driver.Final},
		{"Unknown", onceward.Unknown(plain), driver.Unknown, driver.Unknown, driver.Unknown, driver.Unknown},
		{"FinalError", &onceward.FinalError{Text: "no"}, driver.Final, driver.Final, driver.Final, driver.Final},
		{"Final over Unknown", onceward.Final(onceward.Unknown(plain)), driver.Final, driver.Final, driver.Final, driver.Final},
		{"unknown of a nested call", onceward.ErrUnknown, driver.Unknown, driver.Unknown, driver.Unknown, driver.Retryable},
		{"hidden class", fmt.Errorf("bank: %v", context.DeadlineExceeded), driver.Retryable, driver.Final, driver.Unknown, driver.Retryable}, //nolint:errorlint // the trap
		{"wrapped Final", fmt.Errorf("x: %w", onceward.Final(plain)), driver.Final, driver.Final, driver.Final, driver.Final},
		{"deadline", context.DeadlineExceeded, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"cancelled", fmt.Errorf("bank: %w", context.Canceled), driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"timeout", &net.DNSError{IsTimeout: true}, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"os deadline", os.ErrDeadlineExceeded, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"reset", &net.OpError{Err: os.NewSyscallError("read", syscall.ECONNRESET)}, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"unexpected EOF", io.ErrUnexpectedEOF, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"HTTP call without an answer", &url.Error{Op: "Post", URL: "http://bank", Err: errors.New("http2: stream closed")}, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"HTTP call to nowhere", &url.Error{Op: "Post", URL: "http://bank", Err: &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}}, driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"no such host", &url.Error{Op: "Post", URL: "http://bank", Err: &net.DNSError{IsNotFound: true}}, driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"no URL", &url.Error{Op: "parse", URL: ":", Err: plain}, driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"network gone", &net.OpError{Op: "read", Err: syscall.ENETUNREACH}, driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"HTTP/2 stream", errors.New("stream error: stream ID 1; INTERNAL_ERROR"), driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"MySQL", errors.New("invalid connection"), driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"PostgreSQL", errors.New("FATAL: terminating connection (SQLSTATE 57P01)"), driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"gRPC", errors.New("rpc error: code = Unavailable desc = transport is closing"), driver.Unknown, driver.Final, driver.Unknown, driver.Retryable},
		{"gRPC answer", errors.New("rpc error: code = FailedPrecondition desc = no money"), driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
		{"refused", &net.OpError{Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, driver.Retryable, driver.Final, driver.Unknown, driver.Retryable},
	} {
		for policy, want := range map[string]driver.Failure{"infer": c.infer, "keep": c.keep, "strict": c.strict, "repeatable": c.repeatableInfer} {
			o := onceward.Operation{}
			switch policy {
			case "keep":
				o.OnError = onceward.KeepFailure
			case "strict":
				o.OnError = onceward.Strict
			case "repeatable":
				o.Repeatable = true
			}
			d := newDesk(t, o)
			_, _, err := d.pay(t.Context(), "K", func(context.Context) (string, error) { return "", c.err })
			if !errors.Is(err, c.err) {
				t.Errorf("%s, %s: the first caller lost the error: %v", c.name, policy, err)
			}
			v, _, again := d.pay(t.Context(), "K", paid)
			var final *onceward.FinalError
			switch want {
			case driver.Retryable:
				if v != "paid" || again != nil {
					t.Errorf("%s, %s: %q %v, want another run", c.name, policy, v, again)
				}
			case driver.Final:
				if !errors.As(again, &final) || final.Text != c.err.Error() {
					t.Errorf("%s, %s: %v, want the first failure", c.name, policy, again)
				}
			case driver.Unknown:
				if !errors.Is(again, onceward.ErrUnknown) {
					t.Errorf("%s, %s: %v, want unknown", c.name, policy, again)
				}
			}
		}
	}
}

func TestPanicAndGoexit(t *testing.T) {
	t.Parallel()
	for _, repeatable := range []bool{false, true} {
		d := newDesk(t, onceward.Operation{Repeatable: repeatable})
		func() {
			defer func() {
				if p := recover(); p != "broken" {
					t.Errorf("the panic became %v", p)
				}
			}()
			_, _, _ = d.pay(t.Context(), "K", func(context.Context) (string, error) { panic("broken") })
		}()
		v, _, err := d.pay(t.Context(), "K", paid)
		if repeatable && (v != "paid" || err != nil) || !repeatable && !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("repeatable %v: %q %v", repeatable, v, err)
		}
	}
}

func TestCaseB008RecoveryIsThePolicysChoice(t *testing.T) {
	t.Parallel()
	for _, repeatable := range []bool{false, true} {
		mem := memstore.New(nil)
		d := newDeskOn(t, mem, onceward.Operation{Repeatable: repeatable})
		g, _ := onceward.New(mem, &onceward.Options{SingleTenant: true})
		op, _ := g.Define(onceward.Operation{Name: "pay", Repeatable: repeatable})
		dead, err := g.Begin(t.Context(), op, onceward.Call{Key: k("K"), Request: 7}) // and dies here
		if err != nil {
			t.Fatal(err)
		}
		mem.Shift(driver.Identify(driver.Scope{}, "pay", "K"), time.Minute)
		v, info, err := d.pay(t.Context(), "K", paid)
		if repeatable && (v != "paid" || !info.Takeover) || !repeatable && !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("repeatable %v: %q %+v %v", repeatable, v, info, err)
		}
		if n := d.ledger.Count("K"); repeatable && n != 1 || !repeatable && n != 0 {
			t.Errorf("repeatable %v: ran %d times", repeatable, n)
		}
		_, _ = dead.Attempt.Fail(t.Context(), driver.Retryable, nil, onceward.Result{})
	}
}

func TestRejectAndRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{OnDuplicate: onceward.Reject})
	_, _, _ = d.pay(t.Context(), "K", paid)
	if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, onceward.ErrDuplicate) {
		t.Errorf("%v", err)
	}
	if _, err := onceward.Do(t.Context(), d.op, onceward.Call{}, paid); !errors.Is(err, onceward.ErrKeyMissing) {
		t.Errorf("%v", err)
	}
	g, _ := onceward.New(memstore.New(nil), nil)
	op, _ := g.Define(onceward.Operation{Name: "pay"})
	if _, err := onceward.Do(t.Context(), op, onceward.Call{Key: k("secret-key")}, paid); !errors.Is(err, onceward.ErrScopeMissing) || strings.Contains(err.Error(), "secret-key") {
		t.Errorf("%v", err)
	}
	if _, err := onceward.Do(t.Context(), nil, onceward.Call{Key: k("K")}, paid); err == nil {
		t.Error("no operation was taken")
	}
}

// TestCaseB067NothingPanicsAtConstruction.
func TestCaseB067ZeroValues(t *testing.T) {
	t.Parallel()
	if _, err := onceward.New(nil, nil); err == nil {
		t.Error("no store was taken")
	}
	if _, err := onceward.New(memstore.New(nil), &onceward.Options{StoreTimeout: -1}); err == nil {
		t.Error("a negative timeout was taken")
	}
	g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []onceward.Operation{
		{}, {Name: "a b"}, {Name: strings.Repeat("x", 65)}, {Name: "x", Lease: time.Millisecond}, {Name: "x", Retention: -1},
		{Name: "x", Timeout: -1}, {Name: "x", MaxAttempts: -1}, {Name: "x", OnInFlight: onceward.Wait(-1)}, {Name: "x", OnError: 9},
	} {
		if _, err := g.Define(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	op, err := g.Define(onceward.Operation{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if p := op.Policy(); op.Name() != "x" || op.Guard() != g || p.Retention != onceward.DefaultRetention || p.Lease != onceward.DefaultLease ||
		p.Timeout != onceward.DefaultTimeout || p.MaxAttempts != onceward.DefaultMaxAttempts || p.Codec.Name() != "json" || p.OnInFlight != onceward.Conflict() {
		t.Errorf("%+v", p)
	}
	if _, err := g.Define(onceward.Operation{Name: "x"}); err == nil {
		t.Error("a name was taken twice")
	}
}

// TestCaseB067NothingPanicsAtTheFirstCall: what was not made by its constructor is refused.
func TestCaseB067NothingPanicsAtTheFirstCall(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	call := onceward.Call{Key: k("K")}
	for name, try := range map[string]func() error{
		"zero guard":          func() error { _, err := new(onceward.Guard).Define(onceward.Operation{Name: "x"}); return err },
		"no operation":        func() error { _, err := onceward.Do(t.Context(), nil, call, paid); return err },
		"zero operation":      func() error { _, err := onceward.Do(t.Context(), new(onceward.Op), call, paid); return err },
		"no function":         func() error { _, err := onceward.Do[int](t.Context(), d.op, call, nil); return err },
		"begin, no operation": func() error { _, err := d.Begin(t.Context(), nil, call); return err },
		"begin, foreign one":  func() error { _, err := newDesk(t, onceward.Operation{}).Begin(t.Context(), d.op, call); return err },
		"zero call":           func() error { _, err := d.Begin(t.Context(), d.op, onceward.Call{}); return err },
	} {
		if err := try(); err == nil || !strings.HasPrefix(err.Error(), "onceward: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := d.store.Count(faultstore.Claim); n != 0 {
		t.Errorf("%d claims", n)
	}
	g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true}) // no logger, no observer
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := onceward.Do(t.Context(), op, call, paid); v != "paid" || err != nil {
		t.Errorf("%q %v", v, err)
	}
}

// TestCodes: the table of the answers, exhaustive.
func TestCodes(t *testing.T) {
	t.Parallel()
	want := map[onceward.Code]struct {
		retry onceward.Retry
		exit  int
	}{
		"key_missing": {"stop", 2}, "key_invalid": {"stop", 2}, "scope_missing": {"stop", 2}, "in_flight": {"same_key", 4},
		"superseded": {"same_key", 4}, "outcome_unknown": {"same_key", 9}, "duplicate": {"stop", 4}, "key_expired": {"stop", 5},
		"body_too_large": {"stop", 2}, "mismatch": {"new_key", 5}, "too_many": {"same_key", 4}, "store_unavailable": {"same_key", 6},
		"store_full": {"same_key", 6}, "upstream_unreachable": {"same_key", 6}, "corrupt_record": {"stop", 1}, "result_not_kept": {"stop", 0},
	}
	for _, c := range onceward.Codes() {
		w, ok := want[c]
		if !ok || c.Retry() != w.retry || c.Exit() != w.exit || c.Text() == "" || c.Text() == string(c) {
			t.Errorf("%s: %s, exit %d, %q", c, c.Retry(), c.Exit(), c.Text())
		}
		delete(want, c)
	}
	if len(want) > 0 {
		t.Errorf("no code: %v", want)
	}
}

// TestJudgementOfNestedWork: what a nested operation was told about its own work decides nothing about the work around it.
func TestJudgementOfNestedWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outer onceward.Operation
		judge func(error) error
		want  error
	}{
		"inner retryable, outer strict":   {onceward.Operation{OnError: onceward.Strict}, onceward.Retryable, onceward.ErrUnknown},
		"inner unknown, outer":            {onceward.Operation{}, onceward.Unknown, onceward.ErrUnknown},
		"inner unknown, outer repeatable": {onceward.Operation{Repeatable: true}, onceward.Unknown, nil},
	} {
		d := newDesk(t, c.outer)
		inner, err := d.Define(onceward.Operation{Name: "inner"})
		if err != nil {
			t.Fatal(err)
		}
		busy := errors.New("busy")
		_, _, err = d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			_, err := onceward.Do(ctx, inner, onceward.Call{Key: k("I")}, func(context.Context) (string, error) { return "", c.judge(busy) })
			if !errors.Is(err, busy) {
				t.Errorf("%s: the inner caller lost the error: %v", name, err)
			}
			return "", err
		})
		if !errors.Is(err, busy) {
			t.Errorf("%s: the outer caller lost the error: %v", name, err)
		}
		if _, _, err := d.pay(t.Context(), "K", paid); !errors.Is(err, c.want) {
			t.Errorf("%s: then %v, want %v", name, err, c.want)
		}
	}
}
