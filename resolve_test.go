package onceward_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/faultstore"
)

// asked is a resolver that answers as told, and counts.
type asked struct {
	n      atomic.Int64
	answer onceward.Answer
	err    error
	panics bool
	last   onceward.Question
}

func (a *asked) resolve(_ context.Context, q onceward.Question) (onceward.Answer, error) {
	a.n.Add(1)
	a.last = q
	if a.panics {
		panic("a bug in it")
	}
	return a.answer, a.err
}

// unclear is a record whose attempt could not tell what it did. It lets the time pass in which nobody may be asked.
func (d *desk) unclear(t *testing.T, work func(context.Context) (string, error)) driver.Snapshot {
	t.Helper()
	if _, _, err := d.pay(t.Context(), "K", work); !errors.Is(err, onceward.ErrUnknown) {
		t.Fatalf("%v", err)
	}
	pass(time.Hour)
	return d.snapshot(t)
}

func (d *desk) snapshot(t *testing.T) driver.Snapshot {
	t.Helper()
	snap, err := d.mem.Get(t.Context(), driver.Identify(driver.Scope{}, "pay", "K"))
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func lostWork(context.Context) (string, error) { return "", onceward.Unknown(errors.New("no reply")) }

func TestResolveAsksAboutTheWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answer  onceward.Answer
		err     error
		panics  bool
		settled bool
		word    string
		then    func(v string, info onceward.Info, err error) bool
		runs    int // of the work, in all
	}{
		{"it happened", onceward.Happened("paid at the bank"), nil, false, true, "", func(v string, info onceward.Info, err error) bool {
			return v == "paid at the bank" && info.Kind == onceward.KindReplay && err == nil
		}, 1},
		{"it did not", onceward.DidNotHappen(), nil, false, true, "", func(v string, info onceward.Info, err error) bool {
			return v == "paid" && info.Kind == onceward.KindRun && info.Attempt == 2 && err == nil
		}, 2},
		{"no", onceward.AnsweredNo("insufficient funds"), nil, false, true, "", func(_ string, _ onceward.Info, err error) bool {
			var no *onceward.FinalError
			return errors.As(err, &no) && no.Text == "insufficient funds"
		}, 1},
		{"nobody knows", onceward.StillUnknown(), nil, false, false, "", unknownStill, 1},
		{"the zero answer", onceward.Answer{}, nil, false, false, "", unknownStill, 1},
		{"unreachable", onceward.DidNotHappen(), errors.New("connection refused"), false, false, "connection refused", unknownStill, 1},
		{"it panics", onceward.DidNotHappen(), nil, true, false, "panicked", unknownStill, 1},
		{"what can't be stored", onceward.Happened(make(chan int)), nil, false, false, "can't be stored", unknownStill, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &asked{answer: c.answer, err: c.err, panics: c.panics}
				d := newDesk(t, onceward.Operation{Resolve: a.resolve})
				snap := d.unclear(t, lostWork)
				called, settled, err := d.Resolve(t.Context(), snap)
				if !called || settled != c.settled || a.n.Load() != 1 || (err == nil) != (c.word == "") || err != nil && !strings.Contains(err.Error(), c.word) {
					t.Errorf("asked %v (%d times), settled %v, %v", called, a.n.Load(), settled, err)
				}
				if q := &a.last; q.Operation != "pay" || q.Key.Reveal() != "K" || q.Attempt != 1 || q.Step != "" || !strings.Contains(q.Error, "no reply") || !q.Begun.Equal(snap.Record.ClaimedAt) {
					t.Errorf("the question: %+v", q)
				}
				if n := d.count(onceward.EventResolved); (n == 1) != c.settled {
					t.Errorf("%d events", n)
				}
				v, info, err := d.pay(t.Context(), "K", paid)
				if !c.then(v, info, err) || d.effects("K") != c.runs {
					t.Errorf("then %q %+v %v, the work ran %d times", v, info, err, d.effects("K"))
				}
				if r := d.snapshot(t).Record; c.settled && c.runs == 1 && !strings.Contains(r.Resolution, "resolver") {
					t.Errorf("no word of who resolved it: %q", r.Resolution)
				}
			})
		})
	}
}

func unknownStill(_ string, _ onceward.Info, err error) bool {
	return errors.Is(err, onceward.ErrUnknown)
}

// TestNobodyIsAskedTooEarly: before the attempt's timeout and grace are over the original may still arrive.
func TestNobodyIsAskedTooEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &asked{answer: onceward.DidNotHappen()}
		d := newDesk(t, onceward.Operation{Resolve: a.resolve, Timeout: 10 * time.Minute, Lease: time.Minute})
		if _, _, err := d.pay(t.Context(), "K", lostWork); !errors.Is(err, onceward.ErrUnknown) {
			t.Fatal(err)
		}
		pass(10*time.Minute + 20*time.Second - time.Nanosecond)
		if called, settled, err := d.Resolve(t.Context(), d.snapshot(t)); called || settled || err != nil || a.n.Load() != 0 {
			t.Errorf("%v %v %v", called, settled, err)
		}
		pass(time.Nanosecond)
		if called, settled, err := d.Resolve(t.Context(), d.snapshot(t)); !called || !settled || err != nil || a.n.Load() != 1 {
			t.Errorf("%v %v %v", called, settled, err)
		}
	})
}

// TestNothingIsAskedAboutWhatIsKnown, about what another guard defines, and about what moved on meanwhile.
func TestNothingIsAskedAboutWhatIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &asked{answer: onceward.DidNotHappen()}
		d := newDesk(t, onceward.Operation{Resolve: a.resolve})
		snap := d.unclear(t, lostWork)
		for name, g := range map[string]*onceward.Guard{
			"no resolver":         newDeskOn(t, d.mem, onceward.Operation{}).Guard,
			"another operation's": newDeskOn(t, d.mem, onceward.Operation{Name: "refund", Resolve: a.resolve}).Guard,
		} {
			if called, settled, err := g.Resolve(t.Context(), snap); called || settled || err != nil {
				t.Errorf("%s: %v %v %v", name, called, settled, err)
			}
		}
		if _, settled, err := d.Resolve(t.Context(), snap); !settled || err != nil {
			t.Fatal(err)
		}
		if called, settled, err := d.Resolve(t.Context(), snap); called || settled || err != nil || a.n.Load() != 1 {
			t.Errorf("from an old page: %v %v %v", called, settled, err)
		}
		d.store.Refuse(faultstore.Get, -1)
		if called, _, err := d.Resolve(t.Context(), snap); called || err == nil {
			t.Errorf("the store is away: %v %v", called, err)
		}
	})
}

// TestResolverLosesToAPerson: what was resolved while the other side was being asked stays.
func TestResolverLosesToAPerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d *desk
		d = newDesk(t, onceward.Operation{Resolve: func(ctx context.Context, _ onceward.Question) (onceward.Answer, error) {
			r := d.snapshot(t).Record
			reply, err := d.mem.Settle(ctx, driver.Settlement{
				ID: r.ID, Fence: r.Fence, Owner: driver.Owner{9}, Resolution: driver.ResolutionBy("Li", "the bank's statement", &r),
				Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "json", Data: []byte(`"by Li"`)}},
			})
			if err != nil || !reply.Applied {
				t.Error(reply, err)
			}
			return onceward.DidNotHappen(), nil
		}})
		called, settled, err := d.Resolve(t.Context(), d.unclear(t, lostWork))
		if !called || settled || err != nil {
			t.Errorf("%v %v %v", called, settled, err)
		}
		if v, _, err := d.pay(t.Context(), "K", paid); v != "by Li" || err != nil || d.effects("K") != 1 {
			t.Errorf("%q %v", v, err)
		}
	})
}

// TestResolveAsksAboutSteps: the next attempt goes on from what they know, without a second call of what took effect.
func TestResolveAsksAboutSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		bank, post onceward.Answer
		bankErr    error
		whole      bool // Operation.Resolve is there too
		settled    bool
		calls      [2]int // of bank and post, in all
		want       string
	}{
		{"both happened", onceward.Happened("b"), onceward.Happened("p"), nil, false, true, [2]int{1, 1}, "bp"},
		{"one did not", onceward.Happened("b"), onceward.DidNotHappen(), nil, false, true, [2]int{1, 2}, "bpost ref"},
		{"neither did", onceward.DidNotHappen(), onceward.DidNotHappen(), nil, false, true, [2]int{2, 2}, "bank refpost ref"},
		{"one answered no", onceward.AnsweredNo("no funds"), onceward.Happened("p"), nil, false, true, [2]int{1, 1}, "no funds"},
		{"one can't tell", onceward.Happened("b"), onceward.StillUnknown(), nil, false, false, [2]int{1, 1}, "nobody can tell"},
		{"one is unreachable", onceward.Answer{}, onceward.Happened("p"), errors.New("down"), false, false, [2]int{1, 1}, "nobody can tell"},
		{"one can't tell, and the whole is not asked", onceward.Happened("b"), onceward.StillUnknown(), nil, true, false, [2]int{1, 1}, "nobody can tell"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bank, post, whole := &asked{answer: c.bank, err: c.bankErr}, &asked{answer: c.post}, &asked{answer: onceward.DidNotHappen()}
				o := onceward.Operation{Effects: onceward.Effects{
					{Name: "bank", Way: onceward.ByStep, Resolve: bank.resolve},
					{Name: "post", Way: onceward.ByStep, Resolve: post.resolve},
				}}
				if c.whole {
					o.Resolve = whole.resolve
				}
				d := newDesk(t, o)
				lose := true
				var stepKey key.Key
				work := func(ctx context.Context) (string, error) {
					b, err := onceward.Step(ctx, "bank", func(ctx context.Context) (string, error) {
						v, _ := d.charge("bank")(ctx)
						stepKey, _ = onceward.StepKey(ctx, "bank")
						if lose {
							return "", onceward.Unknown(errors.New("no reply"))
						}
						return v, nil
					})
					if err != nil && !lose {
						return "", err
					}
					p, err := onceward.Step(ctx, "post", func(ctx context.Context) (string, error) {
						v, _ := d.charge("post")(ctx)
						if lose {
							return "", onceward.Unknown(errors.New("no reply"))
						}
						return v, nil
					})
					return b + p, err
				}
				snap := d.unclear(t, work)
				lose = false
				_, settled, err := d.Resolve(t.Context(), snap)
				if settled != c.settled || (err != nil) != (c.bankErr != nil) || whole.n.Load() != 0 {
					t.Errorf("settled %v, %v", settled, err)
				}
				if q := &bank.last; q.Step != "bank" || q.Attempt != 1 || q.Begun.IsZero() || q.StepKey != stepKey {
					t.Errorf("the question: %+v", q)
				}
				v, _, err := d.pay(t.Context(), "K", work)
				got := v
				if err != nil {
					got = err.Error()
				}
				if !strings.Contains(got, c.want) || d.effects("bank") != c.calls[0] || d.effects("post") != c.calls[1] {
					t.Errorf("then %q; bank %d, post %d", got, d.effects("bank"), d.effects("post"))
				}
			})
		})
	}
}

// TestWholeIsAskedWhereStepsCannotTell: a step without a resolver, or something else on the manifest, stands in the way.
func TestWholeIsAskedWhereStepsCannotTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		step, whole := &asked{answer: onceward.Happened("b")}, &asked{answer: onceward.Happened("all of it")}
		d := newDesk(t, onceward.Operation{Resolve: whole.resolve, Effects: onceward.Effects{
			{Name: "bank", Way: onceward.ByStep, Resolve: step.resolve},
			{Name: "post", Way: onceward.ByStep},
		}})
		snap := d.unclear(t, func(ctx context.Context) (string, error) {
			for _, name := range []string{"bank", "post"} {
				_, _ = onceward.Step(ctx, name, func(context.Context) (string, error) { return "", onceward.Unknown(errors.New("no reply")) })
			}
			return lostWork(ctx)
		})
		if _, settled, err := d.Resolve(t.Context(), snap); !settled || err != nil || step.n.Load() != 0 || whole.n.Load() != 1 {
			t.Errorf("%v %v, the step %d, the whole %d", settled, err, step.n.Load(), whole.n.Load())
		}
		if v, info, err := d.pay(t.Context(), "K", paid); v != "all of it" || info.Kind == onceward.KindRun || err != nil {
			t.Errorf("%q %v", v, err)
		}
	})
}

// TestCaseB115AskedByTheExactReference: the key that the step's call carried is the whole reference, and no other's prefix.
func TestCaseB115AskedByTheExactReference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger := map[string]string{} // at the bank: reference to payment
		d := newDesk(t, onceward.Operation{Effects: onceward.Effects{{Name: "p1-a1", Way: onceward.ByStep, Resolve: func(_ context.Context, q onceward.Question) (onceward.Answer, error) {
			if paid, ok := ledger[q.StepKey.Reveal()]; ok {
				return onceward.Happened(paid), nil
			}
			return onceward.DidNotHappen(), nil
		}}, {Name: "p1-a10", Way: onceward.ByStep}}})
		snap := d.unclear(t, func(ctx context.Context) (string, error) {
			if _, err := onceward.Step(ctx, "p1-a10", func(ctx context.Context) (string, error) {
				k, err := onceward.StepKey(ctx, "p1-a10")
				ledger[k.Reveal()] = "paid by p1-a10"
				return "paid by p1-a10", err
			}); err != nil {
				t.Error(err)
			}
			return onceward.Step(ctx, "p1-a1", func(context.Context) (string, error) { return "", onceward.Unknown(errors.New("no reply")) })
		})
		if _, settled, err := d.Resolve(t.Context(), snap); !settled || err != nil {
			t.Fatal(settled, err)
		}
		v, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) { return onceward.Step(ctx, "p1-a1", d.charge("p1-a1")) })
		if v != "p1-a1 ref" || err != nil || d.effects("p1-a1") != 1 {
			t.Errorf("%q %v: it was taken for the other one's", v, err)
		}
	})
}
