package storetest

import (
	"reflect"
	"time"

	"github.com/onceward/onceward/driver"
)

// steps returns the store's power, or skips the case.
func (b *bench) steps() driver.StepStore {
	b.Helper()
	s, ok := b.s.(driver.StepStore)
	if !ok {
		b.Skipf("%T is no driver.StepStore", b.s)
	}
	return s
}

func (b *bench) progress(p driver.Progress, want error) {
	b.Helper()
	if err := b.steps().Progress(b.Context(), p); err != want { //nolint:errorlint // a store returns it as it is
		b.Fatalf("progress: %v, want %v", err, want)
	}
}

func begun(name string) driver.Step {
	return driver.Step{Name: name, State: driver.StepBegun, Attempt: 1, BegunAt: time.Date(2026, 7, 1, 12, 0, 0, 123456000, time.UTC)}
}

func did(name, data string) driver.Step {
	s := begun(name)
	s.State, s.Result = driver.StepDone, driver.Result{Codec: "raw", Data: []byte(data)}
	return s
}

func intentOf(c driver.Claim, got driver.Claimed, steps ...driver.Step) driver.Progress {
	return driver.Progress{ID: c.ID, Owner: c.Owner, Fence: got.Record.Fence, Intent: true, Lease: lease, Steps: steps}
}

func resultOf(c driver.Claim, got driver.Claimed, steps ...driver.Step) driver.Progress {
	p := intentOf(c, got, steps...)
	p.Intent = false
	return p
}

func stepCases() []Case {
	return []Case{
		{"steps/are kept as they are", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			refused := begun("sms")
			refused.State, refused.Error = driver.StepRefused, "no \"such\" number, 号码无效"
			want := []driver.Step{did("bank", "\x00\xff ref"), refused, begun("points"), did("empty", "")}
			b.progress(intentOf(c, got, want...), nil)
			if r := b.get(c.ID); !reflect.DeepEqual(r.Steps, want) {
				t.Errorf("want %+v\ngot  %+v", want, r.Steps)
			}
			b.progress(resultOf(c, got, want[:1]...), nil)
			if r := b.get(c.ID); !reflect.DeepEqual(r.Steps, want[:1]) {
				t.Errorf("want %+v\ngot  %+v", want[:1], r.Steps)
			}
		}},
		{"steps/a later attempt is told", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.progress(resultOf(c, got, did("bank", "ref")), nil)
			b.ends(endOf(c, got, failure(driver.Retryable, "busy")), true)
			if r := b.wins(ask("k")).Record; len(r.Steps) != 1 || string(r.Steps[0].Result.Data) != "ref" {
				t.Errorf("%+v", r.Steps)
			}
		}},
		{"steps/a takeover is told", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			p := intentOf(c, b.wins(c), begun("bank"))
			p.OnLapse = driver.LapseRepeat
			b.progress(p, nil)
			b.shift(c.ID, 2*lease)
			got := b.wins(repeatable(ask("k")))
			if r := got.Record; !got.Takeover || len(r.Steps) != 1 || r.Steps[0].State != driver.StepBegun {
				t.Errorf("takeover %v, %+v", got.Takeover, r.Steps)
			}
		}},
		{"steps/an expired record has none", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.progress(resultOf(c, got, did("bank", "ref")), nil)
			b.ends(endOf(c, got, success("r")), true)
			b.shift(c.ID, 2*retention)
			if r := b.wins(ask("k")).Record; r.Steps != nil {
				t.Errorf("%+v", r.Steps)
			}
			if r := b.get(c.ID); r.Steps != nil {
				t.Errorf("%+v", r.Steps)
			}
		}},
		{"steps/say what a lapse means", func(t T, h *Harness) {
			b := open(t, h)
			for _, x := range []struct {
				onLapse   driver.OnLapse
				within    time.Duration
				duplicate driver.Verdict
			}{
				{driver.LapseUnknown, 0, driver.OutcomeOpen},
				{driver.LapseRepeat, 0, driver.GotClaim},
				{driver.LapseRepeat, 10 * lease, driver.GotClaim},
				{driver.LapseRepeat, lease, driver.OutcomeOpen},
			} {
				c := repeatable(ask(newOwnerKey()))
				c.RepeatableFor = 3 * lease
				p := intentOf(c, b.wins(c), begun("bank"))
				p.OnLapse, p.RepeatableFor = x.onLapse, x.within
				b.progress(p, nil)
				r := b.get(c.ID)
				if x.within == 0 != r.RepeatableUntil.IsZero() || x.within > 0 && r.RepeatableUntil.Sub(r.UpdatedAt) != x.within {
					t.Errorf("within %v: repeatable until %v, updated at %v", x.within, r.RepeatableUntil, r.UpdatedAt)
				}
				b.shift(c.ID, 2*lease)
				next := c
				next.Owner = newOwner()
				b.finds(next, x.duplicate)
			}
		}},
		{"steps/renew the lease", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.shift(c.ID, lease/2)
			b.progress(intentOf(c, got, begun("bank")), nil)
			r := b.get(c.ID)
			if left := r.LeaseUntil.Sub(r.UpdatedAt); left != lease {
				t.Errorf("%v are left", left)
			}
			p := resultOf(c, got, did("bank", "ref"))
			p.Lease = time.Minute
			b.progress(p, nil)
			if after := b.get(c.ID); !after.LeaseUntil.Equal(r.LeaseUntil) {
				t.Errorf("the lease got shorter: %v, then %v", r.LeaseUntil, after.LeaseUntil)
			}
		}},
		{"steps/no intent after the lease", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.shift(c.ID, lease+time.Minute)
			b.progress(intentOf(c, got, begun("bank")), driver.ErrLeaseLost)
			until := b.get(c.ID).LeaseUntil
			b.progress(resultOf(c, got, did("bank", "ref")), nil)
			if r := b.get(c.ID); !r.LeaseUntil.Equal(until) || len(r.Steps) != 1 {
				t.Errorf("a result after the lease: until %v, then %v; %+v", until, r.LeaseUntil, r.Steps)
			}
		}},
		{"steps/a late result is taken while nobody claimed", func(t T, h *Harness) {
			b := open(t, h)
			for _, onLapse := range []driver.OnLapse{driver.LapseUnknown, driver.LapseRepeat} {
				c := ask(newOwnerKey())
				c.OnLapse = onLapse
				got := b.wins(c)
				b.shift(c.ID, 2*lease)
				b.settle(driver.Settlement{ID: c.ID, Fence: got.Record.Fence}, true)
				b.progress(intentOf(c, got, begun("bank")), driver.ErrLeaseLost)
				b.progress(resultOf(c, got, did("bank", "ref")), nil)
				if r := b.get(c.ID); len(r.Steps) != 1 || r.Status != driver.Fail {
					t.Errorf("%v: %v %+v", onLapse, r.Status, r.Steps)
				}
			}
		}},
		{"steps/begun ones outlive an end that can't speak for them", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			c.RepeatableFor = time.Hour
			got := b.wins(c)
			p := intentOf(c, got, begun("bank"))
			p.RepeatableFor = time.Minute
			b.progress(p, nil)
			until := b.get(c.ID).RepeatableUntil
			f := endOf(c, got, failure(driver.Retryable, "it timed out"))
			f.KeepBegun = true
			b.ends(f, true)
			b.ends(f, true) // its reply was lost
			next := c
			next.Owner = newOwner()
			r := b.wins(next).Record
			if len(r.Steps) != 1 || r.Steps[0].State != driver.StepBegun || !r.RepeatableUntil.Equal(until) || r.Died != 0 {
				t.Errorf("%+v, died %d, repeatable until %v, not %v", r.Steps, r.Died, r.RepeatableUntil, until)
			}
		}},
		{"steps/a resolution tells of them", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			b.progress(intentOf(c, got, begun("bank"), begun("sms")), nil)
			b.ends(endOf(c, got, failure(driver.Unknown, "cut")), true)
			s := driver.Settlement{ID: c.ID, Fence: got.Record.Fence, Outcome: success("r"), Resolution: "by ann: asked", Owner: newOwner(), Steps: []driver.Step{}}
			if _, err := b.s.Settle(b.Context(), s); err == nil {
				t.Errorf("a success with steps was taken")
			}
			s.Outcome, s.Steps = failure(driver.Retryable, "asked"), []driver.Step{did("bank", "ref")}
			b.settle(s, true)
			b.settle(s, true) // its reply was lost
			if r := b.wins(ask("k")).Record; len(r.Steps) != 1 || string(r.Steps[0].Result.Data) != "ref" {
				t.Errorf("%+v", r.Steps)
			}
		}},
		{"steps/not by another, not when superseded", func(t T, h *Harness) {
			b := open(t, h)
			c := repeatable(ask("k"))
			got := b.wins(c)
			other := c
			other.Owner = newOwner()
			old := got
			old.Record.Fence--
			b.progress(intentOf(other, got, begun("bank")), driver.ErrLeaseLost)
			b.progress(resultOf(c, old, begun("bank")), driver.ErrLeaseLost)
			b.progress(intentOf(ask("absent"), got, begun("bank")), driver.ErrLeaseLost)
			b.shift(c.ID, 2*lease)
			next := repeatable(ask("k"))
			again := b.wins(next)
			b.progress(resultOf(c, got, did("bank", "ref")), driver.ErrLeaseLost)
			if r := b.get(c.ID); r.Steps != nil {
				t.Errorf("%+v", r.Steps)
			}
			b.ends(endOf(next, again, success("r")), true)
			b.progress(resultOf(next, again, did("bank", "ref")), driver.ErrLeaseLost)
		}},
		{"steps/a late write is overtaken", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			late, next := intentOf(c, got, begun("bank")), resultOf(c, got, did("bank", "ref"))
			late.Version, next.Version = 1, 2
			b.progress(late, nil)
			b.progress(next, nil)
			b.progress(next, nil) // made again
			b.progress(late, driver.ErrLeaseLost)
			if r := b.get(c.ID); len(r.Steps) != 1 || r.Steps[0].State != driver.StepDone || r.StepsVersion != 2 {
				t.Errorf("version %d, %+v", r.StepsVersion, r.Steps)
			}
		}},
		{"steps/no step without a name or a state", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			got := b.wins(c)
			for _, bad := range []driver.Step{{State: driver.StepDone}, {Name: "bank"}, {Name: "bank", State: driver.StepRefused + 1}} {
				if err := b.steps().Progress(b.Context(), intentOf(c, got, bad)); err == nil {
					t.Errorf("%+v was taken", bad)
				}
			}
			if r := b.get(c.ID); r.Steps != nil {
				t.Errorf("%+v", r.Steps)
			}
		}},
	}
}
