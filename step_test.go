package onceward_test

import (
	"context"
	"errors"
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

// charge is a foreign call that is counted in the other side's ledger.
func (d *desk) charge(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		d.ledger.Add(name)
		return name + " ref", nil
	}
}

// effects are the calls that the other side got under a name.
func (d *desk) effects(name string) int { return d.ledger.Count(name) }

func TestStepIsRememberedByTheNextAttempt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	busy := errors.New("busy")
	for try := range 3 {
		v, info, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			ref, err := onceward.Step(ctx, "bank", d.charge("bank"))
			if err != nil || ref != "bank ref" {
				t.Errorf("try %d: %q %v", try, ref, err)
			}
			if try < 2 {
				return "", busy
			}
			return ref, nil
		})
		if try < 2 && !errors.Is(err, busy) || try == 2 && (v != "bank ref" || err != nil || info.Attempt != 3) {
			t.Errorf("try %d: %q %v, attempt %d", try, v, err, info.Attempt)
		}
	}
	if n := d.effects("bank"); n != 1 {
		t.Errorf("the bank was called %d times", n)
	}
	// One write for the intent, one for the result; none where it was remembered.
	if n := d.store.Count(faultstore.Progress); n != 2 {
		t.Errorf("%d writes", n)
	}
}

func TestStepRemembersTheAnswerNo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	for try := range 2 {
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			_, err := onceward.Step(ctx, "bank", func(context.Context) (string, error) {
				d.ledger.Add("bank")
				return "", onceward.Final(errors.New("no money"))
			})
			var final *onceward.FinalError
			if !errors.As(err, &final) || final.Text != "no money" {
				t.Errorf("try %d: %v", try, err)
			}
			return "", onceward.Retryable(errors.New("later"))
		})
		if err == nil {
			t.Error("no error")
		}
	}
	if n := d.effects("bank"); n != 1 {
		t.Errorf("the bank was asked %d times", n)
	}
}

// TestStepFailedPlainlyRunsAgain: a function that returns a plain error has said that it failed.
func TestStepFailedPlainlyRunsAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	busy := errors.New("busy")
	for try := range 2 {
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			return onceward.Step(ctx, "bank", func(context.Context) (string, error) {
				d.ledger.Add("bank")
				if try == 0 {
					return "", busy
				}
				return "ref", nil
			})
		})
		if try == 0 && !errors.Is(err, busy) || try == 1 && err != nil {
			t.Errorf("try %d: %v", try, err)
		}
	}
	if n := d.effects("bank"); n != 2 {
		t.Errorf("the bank was called %d times", n)
	}
}

// TestStepWithoutResultIsUnknown: whatever plain error the work makes of it.
func TestStepWithoutResultIsUnknown(t *testing.T) {
	t.Parallel()
	for name, repeatable := range map[string]bool{"not repeatable": false, "repeatable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, onceward.Operation{Repeatable: repeatable})
			work := func(ctx context.Context) (string, error) {
				if _, err := onceward.Step(ctx, "bank", func(context.Context) (string, error) {
					d.ledger.Add("bank")
					return "", context.DeadlineExceeded
				}); err == nil {
					t.Error("no error")
				}
				return "", errors.New("the bank hides what happened")
			}
			_, _, err := d.pay(t.Context(), "K", work)
			if errors.Is(err, onceward.ErrUnknown) == repeatable {
				t.Errorf("%v", err)
			}
			_, _, err = d.pay(t.Context(), "K", work)
			if want := map[bool]int{false: 1, true: 2}[repeatable]; d.effects("bank") != want || errors.Is(err, onceward.ErrUnknown) == repeatable {
				t.Errorf("again: %v, %d calls of the bank", err, d.effects("bank"))
			}
		})
	}
}

// TestUnknownNamesItsStep: to the first caller, to duplicates, and in the record, however the work ended.
func TestUnknownNamesItsStep(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() error{
		"lost answer": func() error { return context.DeadlineExceeded },
		"stated":      func() error { return onceward.Unknown(errors.New("no answer")) },
		"panic":       func() error { panic("in the call") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, onceward.Operation{})
			const want = "step bank has begun and has no result"
			pay := func() error {
				defer func() { _ = recover() }()
				_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
					return onceward.Step(ctx, "bank", func(context.Context) (string, error) { return "", end() })
				})
				return err
			}
			first := pay()
			again := pay()
			snap, err := d.mem.Get(t.Context(), idOf("K"))
			if err != nil || strings.Count(snap.Record.Error, want) != 1 || strings.Count(again.Error(), want) != 1 {
				t.Errorf("%q, to a duplicate %v, %v", snap.Record.Error, again, err)
			}
			if first != nil && strings.Count(first.Error(), want) != 1 || first == nil && name != "panic" {
				t.Errorf("to the first caller: %v", first)
			}
		})
	}
}

// TestStepOfADeadAttempt: with its result it is remembered, without it is unknown; called again where repeating is safe.
func TestStepOfADeadAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		repeatable bool
		ended      bool
		effects    int
		unknown    bool
	}{
		{"repeatable, with its result", true, true, 1, false},
		{"repeatable, without", true, false, 2, false},
		{"not repeatable, without", false, false, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(nil)
				dead, d := newDeskOn(t, mem, onceward.Operation{Repeatable: c.repeatable}), newDeskOn(t, mem, onceward.Operation{Repeatable: c.repeatable})
				a := dead.begin(t, "K")
				if _, err := onceward.Step(a.Context(), "bank", func(context.Context) (string, error) {
					dead.ledger.Add("bank")
					if !c.ended {
						dead.store.Refuse(faultstore.Progress, -1) // as if it died here
					}
					return "bank ref", nil
				}); err != nil {
					t.Fatal(err)
				}
				dead.store.Refuse(faultstore.Renew, -1)
				pass(time.Hour)
				v, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
					return onceward.Step(ctx, "bank", d.charge("bank"))
				})
				if got := dead.effects("bank") + d.effects("bank"); got != c.effects {
					t.Errorf("%d calls of the bank, want %d", got, c.effects)
				}
				if errors.Is(err, onceward.ErrUnknown) != c.unknown || !c.unknown && v != "bank ref" {
					t.Errorf("%q %v", v, err)
				}
				_, _ = a.Fail(t.Context(), driver.Retryable, nil, onceward.Result{})
			})
		})
	}
}

// TestStepNeedsAnUnlapsedLease: without it fn is not run, and the work is told by its context.
func TestStepNeedsAnUnlapsedLease(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
		snap, err := d.mem.Get(ctx, idOf("K"))
		if err != nil {
			t.Fatal(err)
		}
		snap.Record.LeaseUntil = snap.Now.Add(-time.Second)
		d.mem.Put(snap.Record)
		_, err = onceward.Step(ctx, "bank", d.charge("bank"))
		if !errors.Is(err, onceward.ErrLeaseLost) || !errors.Is(context.Cause(ctx), onceward.ErrLeaseLost) {
			t.Errorf("%v, cause %v", err, context.Cause(ctx))
		}
		return "", err
	})
	if err == nil || d.effects("bank") != 0 {
		t.Errorf("%v, %d calls of the bank", err, d.effects("bank"))
	}
}

// TestStepRenewsTheLease: its writes are heartbeats.
func TestStepRenewsTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				pass(9 * time.Second)
				if _, err := onceward.Step(ctx, name, d.charge(name)); err != nil {
					t.Error(err)
				}
			}
			return "", nil
		})
		if n := d.store.Count(faultstore.Renew); err != nil || n != 0 {
			t.Errorf("%v, %d heartbeats beside the steps", err, n)
		}
	})
}

// TestStepIntentNotTaken: nothing is done on the strength of a write that may not be there.
func TestStepIntentNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{})
		d.store.Lose(faultstore.Progress, -1)
		_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) { return onceward.Step(ctx, "bank", d.charge("bank")) })
		if !errors.Is(err, onceward.ErrStoreUnavailable) || d.effects("bank") != 0 {
			t.Errorf("%v, %d calls of the bank", err, d.effects("bank"))
		}
		d.store.Lose(faultstore.Progress, 1) // a lost reply is asked for again
		v, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) { return onceward.Step(ctx, "bank", d.charge("bank")) })
		if v != "bank ref" || err != nil || d.effects("bank") != 1 {
			t.Errorf("%q %v, %d calls of the bank", v, err, d.effects("bank"))
		}
	})
}

func TestStepsInParallel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	names := []string{"bank", "sms", "points", "audit"}
	for try := range 2 {
		_, _, _ = d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
			var wg sync.WaitGroup
			for _, name := range names {
				wg.Go(func() {
					if ref, err := onceward.Step(ctx, name, d.charge(name)); err != nil || ref != name+" ref" {
						t.Errorf("try %d: %s: %q %v", try, name, ref, err)
					}
				})
			}
			wg.Wait()
			return "", errors.New("again")
		})
	}
	for _, name := range names {
		if n := d.effects(name); n != 1 {
			t.Errorf("%s was called %d times", name, n)
		}
	}
}

func TestStepIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	if _, err := onceward.Step(t.Context(), "bank", d.charge("bank")); !errors.Is(err, onceward.ErrNoAttempt) {
		t.Errorf("without an attempt: %v", err)
	}
	if _, err := onceward.StepKey(t.Context(), "bank"); !errors.Is(err, onceward.ErrNoAttempt) {
		t.Errorf("a key without an attempt: %v", err)
	}
	_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
		for _, name := range []string{"", "a b", "短信"} {
			if _, err := onceward.Step(ctx, name, d.charge("bad")); err == nil {
				t.Errorf("name %q was taken", name)
			}
		}
		if _, err := onceward.Step(ctx, "chan", func(context.Context) (chan int, error) { d.ledger.Add("bad"); return nil, nil }); err == nil {
			t.Error("a type that can't come back was taken")
		}
		if _, err := onceward.Step[string](ctx, "nil", nil); err == nil {
			t.Error("no function was taken")
		}
		if _, err := onceward.Step(ctx, "bank", d.charge("bank")); err != nil {
			t.Error(err)
		}
		if _, err := onceward.Step(ctx, "bank", d.charge("bad")); !errors.Is(err, onceward.ErrStepTwice) {
			t.Errorf("twice: %v", err)
		}
		return "", nil
	})
	if err != nil || d.effects("bad") != 0 || d.effects("bank") != 1 {
		t.Errorf("%v, %d, %d", err, d.effects("bad"), d.effects("bank"))
	}
}

// TestStepKeyIsTheSameOnEveryAttempt, and another one for every name, key and operation.
func TestStepKeyIsTheSameOnEveryAttempt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{})
	seen := map[string]int{}
	for range 3 {
		for _, keyText := range []string{"K", "L"} {
			_, _, _ = d.pay(t.Context(), keyText, func(ctx context.Context) (string, error) {
				for _, name := range []string{"bank", "sms"} {
					got, err := onceward.StepKey(ctx, name)
					if err != nil {
						t.Error(err)
					}
					seen[got.Reveal()]++
				}
				return "", errors.New("again")
			})
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d keys, want 4", len(seen))
	}
	for _, n := range seen {
		if n != 3 {
			t.Errorf("a key was seen %d times", n)
		}
	}
}
