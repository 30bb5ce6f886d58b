package onceward_test

import (
	"context"
	"encoding/json"
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

// TestManifestIsValidated: every problem is told at once, by the effect's name.
func TestManifestIsValidated(t *testing.T) {
	t.Parallel()
	ask := func(context.Context, onceward.Question) (onceward.Answer, error) { return onceward.StillUnknown(), nil }
	for want, o := range map[string]onceward.Operation{
		`effect "sms" needs a way`:                    {Effects: onceward.Effects{{Name: "sms"}}},
		`effect "bank" needs a way`:                   {Effects: onceward.Effects{{Name: "sms", Way: onceward.Natural}, {Name: "bank", Way: onceward.Natural + 1}}},
		`effect "a b": the name`:                      {Effects: onceward.Effects{{Name: "a b", Way: onceward.ByKey}}},
		`effect "sms" is on the manifest twice`:       {Effects: onceward.Effects{{Name: "sms", Way: onceward.ByKey}, {Name: "sms", Way: onceward.ByStep}}},
		`HonouredFor is for calls that carry a key`:   {Effects: onceward.Effects{{Name: "sms", Way: onceward.ByOutbox, HonouredFor: time.Hour}}},
		`an attempt may be running for 15m40s`:        {Effects: onceward.Effects{{Name: "bank", Way: onceward.ByStep, HonouredFor: 15 * time.Minute}}},
		`keys are honoured for -1s`:                   {Effects: onceward.Effects{{Name: "bank", Way: onceward.ByStep, HonouredFor: -time.Second}}},
		`there is nothing to bear`:                    {Effects: onceward.Effects{{Name: "rows", Way: onceward.BySameTx, Bearable: true}}},
		`Resolve is for steps`:                        {Effects: onceward.Effects{{Name: "bank", Way: onceward.ByKey, Resolve: ask}}},
		`say two things about the same`:               {Repeatable: true, Effects: onceward.Effects{{Name: "bank", Way: onceward.ByKey}}},
		`StrictSteps needs a manifest`:                {StrictSteps: true},
		`every effect of its manifest must be Bearab`: {OnStoreDown: onceward.Open, Effects: onceward.Effects{{Name: "bank", Way: onceward.ByKey}}},
		`keys come again for 48h0m0s (RetriedFor)`:    {RetriedFor: 48 * time.Hour},
		`retention 24h0m0s: keys come again for -1s`:  {RetriedFor: -time.Second},
	} {
		o.Name = "pay"
		if _, err := newGuard(t).Define(o); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"pay"`) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	bearable := onceward.Operation{Name: "warm", OnStoreDown: onceward.Open, RetriedFor: 24 * time.Hour, Effects: onceward.Effects{
		{Name: "cache", Way: onceward.Natural}, {Name: "reminder", Way: onceward.ByKey, Bearable: true},
	}}
	op, err := newGuard(t).Define(bearable)
	if err != nil {
		t.Fatal(err)
	}
	if got := op.Policy().Effects[1].HonouredFor; got != onceward.DefaultHonouredFor {
		t.Errorf("a key is honoured for %v when nothing is said", got)
	}
	if bearable.Effects[1].HonouredFor != 0 {
		t.Error("Define wrote into the caller's manifest")
	}
}

// TestManifestIsPrinted: as a table, as Markdown, as JSON.
func TestManifestIsPrinted(t *testing.T) {
	t.Parallel()
	op, err := newGuard(t).Define(onceward.Operation{Name: "pay", Effects: onceward.Effects{
		{Name: "bank", Way: onceward.ByStep},
		{Name: "psp", Way: onceward.ByStep, HonouredFor: 48 * time.Hour},
		{Name: "points", Way: onceward.ByKey, HonouredFor: 12 * time.Hour},
		{Name: "settle", Way: onceward.BySameTx},
		{Name: "sms", Way: onceward.ByOutbox},
		{Name: "cache", Way: onceward.Natural},
		{Name: "mail", Way: onceward.ByKey, Bearable: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := op.Manifest()
	if want := `operation pay: an attempt that dies is run again within 12h0m0s, because every effect is kept to once when it is repeated
effect  kept to once by   key honoured for  twice           when an attempt dies in it
bank    step              -                 can't be borne  unknown until somebody resolves it
psp     step              48h0m0s           can't be borne  called again with the same key within 48h0m0s, then unknown
points  same key          12h0m0s           can't be borne  called again with the same key within 12h0m0s, then unknown
settle  same transaction  -                 can't be borne  run again: it took effect with its record, or not at all
sms     outbox            -                 can't be borne  run again: its message committed with the business, or not at all
cache   natural           -                 can't be borne  run again: repeating it changes nothing
mail    same key          24h0m0s           can be borne    run again: twice can be borne
`; m.String() != want {
		t.Errorf("got\n%s\nwant\n%s", m.String(), want)
	}
	if md := m.Markdown(); !strings.Contains(md, "\n| effect | kept to once by |") || strings.Count(md, "\n|") != 9 {
		t.Errorf("Markdown:\n%s", md)
	}
	data, err := json.Marshal(m)
	var back struct {
		Operation string `json:"operation"`
		OnLapse   string `json:"on_lapse"`
		For       string `json:"repeatable_for"`
		Effects   []struct {
			Name, Way string
		} `json:"effects"`
	}
	if err != nil || json.Unmarshal(data, &back) != nil || back.OnLapse != "REPEAT" || back.For != "12h0m0s" || len(back.Effects) != 7 || back.Effects[3].Way != "same transaction" {
		t.Errorf("%s %v", data, err)
	}
	bare, err := newGuard(t).Define(onceward.Operation{Name: "bare"})
	if err != nil {
		t.Fatal(err)
	}
	if got := bare.Manifest().String(); got != "operation bare: an attempt that dies is unknown, because the operation declares no effects, so repeating it is not known to be safe\n" {
		t.Errorf("%q", got)
	}
}

// TestPresets prints them, so that a change of one shows.
func TestPresets(t *testing.T) {
	t.Parallel()
	bank, cache := onceward.Effect{Name: "bank", Way: onceward.ByStep}, onceward.Effect{Name: "cache", Way: onceward.Natural}
	var got strings.Builder
	for _, o := range []onceward.Operation{
		onceward.Money("pay", bank), onceward.General("order", bank), onceward.Fast("view", cache), onceward.Fast("like", bank),
	} {
		op, err := newGuard(t).Define(o)
		if err != nil {
			t.Fatal(err)
		}
		p := op.Policy()
		fmt.Fprintf(&got, "%s: retention %v, lease %v, timeout %v, attempts %d, strict errors %v, strict steps %v, open %v\n",
			p.Name, p.Retention, p.Lease, p.Timeout, p.MaxAttempts, p.OnError == onceward.Strict, p.StrictSteps, p.OnStoreDown == onceward.Open)
	}
	if want := `pay: retention 24h0m0s, lease 30s, timeout 15m0s, attempts 5, strict errors true, strict steps true, open false
order: retention 24h0m0s, lease 30s, timeout 15m0s, attempts 5, strict errors false, strict steps false, open false
view: retention 1h0m0s, lease 10s, timeout 30s, attempts 5, strict errors false, strict steps false, open true
like: retention 1h0m0s, lease 10s, timeout 30s, attempts 5, strict errors false, strict steps false, open false
`; got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// TestStrictStepsAreDeclared: what is not on the manifest is not begun.
func TestStrictStepsAreDeclared(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onceward.Operation{StrictSteps: true, Effects: onceward.Effects{
		{Name: "bank", Way: onceward.ByStep}, {Name: "points", Way: onceward.ByKey}, {Name: "settle", Way: onceward.BySameTx}, {Name: "sms", Way: onceward.ByOutbox},
	}})
	_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
		for name, ok := range map[string]bool{"bank": true, "points": true, "settle": false, "sms": false, "audit": false} {
			_, err := onceward.Step(ctx, name, d.charge(name))
			if errors.Is(err, onceward.ErrUndeclared) == ok || ok && err != nil || (d.effects(name) == 1) != ok {
				t.Errorf("step %s: %v, %d calls", name, err, d.effects(name))
			}
			if _, err := onceward.StepKey(ctx, name); errors.Is(err, onceward.ErrUndeclared) == ok {
				t.Errorf("key %s: %v", name, err)
			}
		}
		_, err := onceward.StepIn(ctx, "bank", onceward.StepTx{}, d.charge("bank"))
		if !errors.Is(err, onceward.ErrUndeclared) {
			t.Errorf("a transaction for what is declared a step: %v", err)
		}
		return "", nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLapseByManifest: what becomes of an attempt that died, by what it declares and how far its step was.
func TestLapseByManifest(t *testing.T) {
	t.Parallel()
	none, begun, ended := "none", "begun", "ended"
	for _, c := range []struct {
		name   string
		effect onceward.Effect
		step   string
		after  time.Duration // the next attempt comes
		again  bool
	}{
		{"step, not begun", onceward.Effect{Way: onceward.ByStep}, none, time.Hour, true},
		{"step, ended", onceward.Effect{Way: onceward.ByStep}, ended, time.Hour, true},
		{"step, begun", onceward.Effect{Way: onceward.ByStep}, begun, time.Hour, false},
		{"step, begun, keys are honoured", onceward.Effect{Way: onceward.ByStep, HonouredFor: 2 * time.Hour}, begun, time.Hour, true},
		{"step, begun, keys were honoured", onceward.Effect{Way: onceward.ByStep, HonouredFor: 2 * time.Hour}, begun, 2*time.Hour + time.Minute, false},
		{"step, ended, keys were honoured", onceward.Effect{Way: onceward.ByStep, HonouredFor: 2 * time.Hour}, ended, 3 * time.Hour, true},
		{"step, begun, can be borne", onceward.Effect{Way: onceward.ByStep, Bearable: true}, begun, 1000 * time.Hour, true},
		{"natural, begun", onceward.Effect{Way: onceward.Natural}, begun, 1000 * time.Hour, true},
		{"by key", onceward.Effect{Way: onceward.ByKey}, none, 23 * time.Hour, true},
		{"by key, forgotten", onceward.Effect{Way: onceward.ByKey}, none, 24*time.Hour + time.Minute, false},
		{"by key, forgotten, can be borne", onceward.Effect{Way: onceward.ByKey, Bearable: true}, none, 1000 * time.Hour, true},
		{"by key and step, ended, forgotten", onceward.Effect{Way: onceward.ByKey}, ended, 25 * time.Hour, false},
		{"by outbox", onceward.Effect{Way: onceward.ByOutbox}, none, 1000 * time.Hour, true},
		{"in a transaction", onceward.Effect{Way: onceward.BySameTx}, none, 1000 * time.Hour, true},
		{"declared in a transaction, begun as a step", onceward.Effect{Way: onceward.BySameTx}, begun, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.effect.Name = "bank"
				o := onceward.Operation{Effects: onceward.Effects{c.effect}}
				mem := memstore.New(nil)
				dead, d := newDeskOn(t, mem, o), newDeskOn(t, mem, o)
				a := dead.begin(t, "K")
				if c.step != none {
					_, _ = onceward.Step(a.Context(), "bank", func(context.Context) (string, error) {
						if c.step == begun {
							dead.store.Refuse(faultstore.Progress, -1) // as if it died here
						}
						return "bank ref", nil
					})
				}
				dead.store.Refuse(faultstore.Renew, -1)
				pass(c.after)
				v, info, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) { return onceward.Step(ctx, "bank", d.charge("bank")) })
				if c.again && (err != nil || v != "bank ref" || !info.Takeover) || !c.again && !errors.Is(err, onceward.ErrUnknown) {
					t.Errorf("%q %v", v, err)
				}
				if want := c.again && c.step != ended; (d.effects("bank") == 1) != want {
					t.Errorf("the bank was called %d times more", d.effects("bank"))
				}
				if !c.again && !strings.Contains(err.Error(), map[bool]string{true: "step bank has begun", false: "time in which"}[c.effect.HonouredFor == 0 && c.effect.Way != onceward.ByKey]) {
					t.Errorf("it does not say why: %v", err)
				}
				_, _ = a.Fail(t.Context(), driver.Retryable, nil, onceward.Result{})
			})
		})
	}
}

// TestWindowCountsFromTheFirstCall: attempts that come again do not move it, however they end.
func TestWindowCountsFromTheFirstCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, onceward.Operation{Effects: onceward.Effects{{Name: "bank", Way: onceward.ByStep, HonouredFor: 2 * time.Hour}}})
		cut := func(ctx context.Context) (string, error) {
			return onceward.Step(ctx, "bank", func(context.Context) (string, error) {
				d.ledger.Add("bank")
				return "", context.DeadlineExceeded
			})
		}
		for range 3 {
			if _, _, err := d.pay(t.Context(), "K", cut); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, onceward.ErrUnknown) {
				t.Errorf("within the window: %v", err)
			}
			pass(50 * time.Minute)
		}
		// The key is forgotten by now: the next attempt may run, for it may be done without the bank, but the bank is not called.
		if _, _, err := d.pay(t.Context(), "K", cut); !errors.Is(err, onceward.ErrUnknown) {
			t.Errorf("after the window: %v", err)
		}
		if n := d.effects("bank"); n != 3 {
			t.Errorf("%d calls of the bank", n)
		}
	})
}

// TestInferenceFollowsTheManifest: an open step makes the outcome unknown, unless what the manifest says makes it safe to run again.
func TestInferenceFollowsTheManifest(t *testing.T) {
	t.Parallel()
	lost := context.DeadlineExceeded
	plain := errors.New("plain")
	for _, c := range []struct {
		name    string
		o       onceward.Operation
		step    error // of the bank; nil: not called
		work    error
		unknown bool
	}{
		{"nothing has begun, the conversation broke", onceward.General("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep}), nil, lost, false},
		{"nothing declared, the conversation broke", onceward.Operation{}, nil, lost, true},
		{"strict, nothing has begun", onceward.Money("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep}), nil, plain, false},
		{"strict, nothing declared", onceward.Money("pay"), nil, plain, true},
		{"strict, a plain error of the step", onceward.Money("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep}), plain, plain, true},
		{"strict, keys are honoured", onceward.Money("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep, HonouredFor: time.Hour}), plain, plain, false},
		{"the step's conversation broke", onceward.General("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep}), lost, plain, true},
		{"the step says that it can't tell", onceward.General("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep}), onceward.Unknown(plain), plain, true},
		{"the same, keys are honoured", onceward.General("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep, HonouredFor: time.Hour}), onceward.Unknown(plain), nil, false},
		{"the work states that nothing happened", onceward.General("pay", onceward.Effect{Name: "bank", Way: onceward.ByStep}), lost, onceward.Retryable(plain), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.o)
			_, _, err := d.pay(t.Context(), "K", func(ctx context.Context) (string, error) {
				if c.step == nil {
					return "", c.work
				}
				_, err := onceward.Step(ctx, "bank", func(context.Context) (string, error) { return "", c.step })
				if c.work == nil {
					return "", err
				}
				return "", c.work
			})
			if err == nil || errors.Is(err, onceward.ErrUnknown) != c.unknown {
				t.Errorf("%v", err)
			}
		})
	}
}
