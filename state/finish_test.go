package state_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

var (
	success   = driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: []byte("r")}}
	final     = driver.Outcome{Status: driver.Fail, Failure: driver.Final, Error: "no"}
	retryable = driver.Outcome{Status: driver.Fail, Failure: driver.Retryable, Error: "busy"}
	unknown   = driver.Outcome{Status: driver.Fail, Failure: driver.Unknown, Error: "cut"}
)

// claimed returns the record of a first attempt of owner 1 at the epoch.
func claimed(onLapse driver.OnLapse) *driver.Record {
	c := claim(1)
	c.OnLapse = onLapse
	r, _, _, _ := state.Claim(nil, c, epoch, 0)
	return &r
}

func endOf(o driver.Outcome) *driver.Finish {
	return &driver.Finish{Claim: *claim(1), Fence: epoch.UnixMicro(), Attempt: 1, Outcome: o}
}

// ended returns the record after its own attempt ended a second after the epoch.
func ended(o driver.Outcome) *driver.Record {
	r, _, _ := state.Finish(claimed(driver.LapseUnknown), endOf(o), epoch.Add(time.Second))
	return &r
}

func settled(r *driver.Record, s *driver.Settlement, at time.Time) *driver.Record {
	s.Fence = r.Fence
	next, _, _ := state.Settle(r, s, at)
	return &next
}

func resolution(o driver.Outcome) *driver.Settlement {
	return &driver.Settlement{Outcome: o, Owner: driver.Owner{7}, Resolution: "by ann: asked"}
}

// TestRecordTable is the table of what a record is: which expire, what each keeps, and what a duplicate gets.
func TestRecordTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		r         *driver.Record
		status    string
		failure   string
		expires   bool
		owned     bool // its attempt may still tell the truth
		duplicate driver.Verdict
	}{
		{"processing", claimed(0), "PROCESSING", "", false, true, driver.InFlight},
		{"success", ended(success), "SUCCESS", "", true, true, driver.Done},
		{"retryable", ended(retryable), "FAIL", "RETRYABLE", true, false, driver.GotClaim},
		{"final", ended(final), "FAIL", "FINAL", true, true, driver.Refused},
		{"unknown", ended(unknown), "FAIL", "UNKNOWN", false, true, driver.OutcomeOpen},
	} {
		if c.r.Status.String() != c.status || c.r.Failure.String() != c.failure || c.r.Owner.IsZero() == c.owned {
			t.Errorf("%s: %v %v, owner %v", c.name, c.r.Status, c.r.Failure, c.r.Owner)
		}
		if !c.expires && !(c.r.ExpiresAt.IsZero() && c.r.CompletedAt.IsZero()) {
			t.Errorf("%s expires at %v", c.name, c.r.ExpiresAt)
		}
		if end := epoch.Add(time.Second); c.expires && !(c.r.CompletedAt.Equal(end) && c.r.ExpiresAt.Equal(end.Add(time.Hour))) {
			t.Errorf("%s: %v to %v, retention counts from the finish", c.name, c.r.CompletedAt, c.r.ExpiresAt)
		}
		if _, v, _, _ := state.Claim(c.r, claim(9), epoch.Add(2*time.Second), 0); v != c.duplicate {
			t.Errorf("%s: a duplicate gets verdict %d, want %d", c.name, v, c.duplicate)
		}
		for _, far := range []time.Duration{time.Hour + time.Second - 1, time.Hour + time.Second, 1e6 * time.Hour} {
			if want := c.expires && far > time.Hour+time.Second-1; state.Expired(c.r, epoch.Add(far)) != want {
				t.Errorf("%s after %v: expired is not %v", c.name, far, want)
			}
		}
	}
}

// TestFinishTable is who may end what: the attempt with its owner and fence, as long as nobody claimed or resolved.
func TestFinishTable(t *testing.T) {
	t.Parallel()
	lapse := func(onLapse driver.OnLapse) *driver.Record {
		return settled(claimed(onLapse), &driver.Settlement{}, epoch.Add(2*lease))
	}
	taken, _, takeover, _ := state.Claim(claimed(driver.LapseRepeat), claim(2), epoch.Add(2*lease), 0)
	if !takeover {
		t.Fatal("nobody took over")
	}
	fence := func(by int64) *driver.Finish {
		f := endOf(success)
		f.Fence += by
		return f
	}
	for _, c := range []struct {
		name    string
		cur     *driver.Record
		f       *driver.Finish
		wait    time.Duration
		applied bool
		w       state.Write
	}{
		{"nothing there", nil, endOf(success), 0, true, state.Insert},
		{"in its lease", claimed(0), endOf(success), time.Second, true, state.Update},
		{"lapsed, nobody came", claimed(0), endOf(success), 1000 * time.Hour, true, state.Update},
		{"lapsed to unknown", lapse(driver.LapseUnknown), endOf(success), 3 * lease, true, state.Update},
		{"lapsed to retryable", lapse(driver.LapseRepeat), endOf(success), 3 * lease, true, state.Update},
		{"its own unknown", ended(unknown), endOf(success), lease, true, state.Update},
		{"lower fence", claimed(0), fence(-1), time.Second, false, state.Keep},
		{"higher fence", claimed(0), fence(1), time.Second, false, state.Keep},
		{"taken over", &taken, endOf(success), 3 * lease, false, state.Keep},
		{"resolved to success", settled(ended(unknown), resolution(success), epoch.Add(lease)), endOf(success), 2 * lease, false, state.Keep},
		{"resolved to final", settled(ended(unknown), resolution(final), epoch.Add(lease)), endOf(success), 2 * lease, false, state.Keep},
		{"resolved to retryable", settled(ended(unknown), resolution(retryable), epoch.Add(lease)), endOf(success), 2 * lease, false, state.Keep},
		{"success, made again", ended(success), endOf(success), lease, true, state.Keep},
		{"final, made again", ended(final), endOf(final), lease, true, state.Keep},
		{"retryable, made again", ended(retryable), endOf(retryable), lease, true, state.Keep},
		{"success, then another end", ended(success), endOf(final), lease, false, state.Keep},
		{"final, then another end", ended(final), endOf(success), lease, false, state.Keep},
		{"retryable, then another end", ended(retryable), endOf(success), lease, false, state.Keep},
	} {
		next, applied, w := state.Finish(c.cur, c.f, epoch.Add(c.wait))
		if applied != c.applied || w != c.w {
			t.Errorf("%s: applied %v, write %d; want %v, %d", c.name, applied, w, c.applied, c.w)
		}
		if w == state.Keep && !reflect.DeepEqual(next, *c.cur) {
			t.Errorf("%s: nothing is to be written, but\n%+v became\n%+v", c.name, *c.cur, next)
		}
		if w != state.Keep && !next.UpdatedAt.Equal(epoch.Add(c.wait)) {
			t.Errorf("%s: updated at %v", c.name, next.UpdatedAt)
		}
		if applied && !c.f.Outcome.Same(&next) {
			t.Errorf("%s: applied, and the record says %+v", c.name, next)
		}
	}
	if r, _, _ := state.Finish(lapse(driver.LapseRepeat), endOf(unknown), epoch.Add(3*lease)); !r.ExpiresAt.IsZero() || !r.CompletedAt.IsZero() {
		t.Errorf("settled to retryable, then said to be unknown by its attempt: it expires at %v", r.ExpiresAt)
	}
	f := endOf(success)
	f.Attempt, f.Died = 4, 3
	r, _, _ := state.Finish(nil, f, epoch)
	if r.Attempt != 4 || r.Died != 3 || r.Fence != f.Fence || r.Owner != f.Claim.Owner || !r.LeaseUntil.IsZero() || r.Key != "k" {
		t.Errorf("inserted: %+v", r)
	}
}

// TestRenewTable is who may renew: the holder, in its lease; and a lease never gets shorter.
func TestRenewTable(t *testing.T) {
	t.Parallel()
	own := driver.Renewal{Owner: driver.Owner{1}, Fence: epoch.UnixMicro(), Lease: lease}
	other, old, short := own, own, own
	other.Owner = driver.Owner{2}
	old.Fence--
	short.Lease = time.Second
	endless := claimed(0)
	endless.LeaseUntil = time.Time{}
	for _, c := range []struct {
		name  string
		cur   *driver.Record
		rn    driver.Renewal
		wait  time.Duration
		ok    bool
		until time.Time
	}{
		{"in its lease", claimed(0), own, lease / 2, true, epoch.Add(lease / 2).Add(lease)},
		{"at its last moment", claimed(0), own, lease - 1, true, epoch.Add(lease - 1).Add(lease)},
		{"when it is over", claimed(0), own, lease, false, time.Time{}},
		{"for less than is left", claimed(0), short, lease / 2, true, epoch.Add(lease)},
		{"by another", claimed(0), other, 0, false, time.Time{}},
		{"with an old fence", claimed(0), old, 0, false, time.Time{}},
		{"finished", ended(success), own, 2 * time.Second, false, time.Time{}},
		{"unknown", ended(unknown), own, 2 * time.Second, false, time.Time{}},
		{"nothing there", nil, own, 0, false, time.Time{}},
	} {
		next, ok := state.Renew(c.cur, &c.rn, epoch.Add(c.wait))
		if ok != c.ok || !next.LeaseUntil.Equal(c.until) {
			t.Errorf("%s: %v until %v, want %v until %v", c.name, ok, next.LeaseUntil, c.ok, c.until)
		}
		if ok {
			if !next.UpdatedAt.Equal(epoch.Add(c.wait)) {
				t.Errorf("%s: updated at %v", c.name, next.UpdatedAt)
			}
			next.LeaseUntil, next.UpdatedAt = c.cur.LeaseUntil, c.cur.UpdatedAt
			if !reflect.DeepEqual(next, *c.cur) {
				t.Errorf("%s: it changed more than the lease: %+v", c.name, next)
			}
		}
	}
	if _, ok := state.Renew(endless, &own, epoch.Add(1000*time.Hour)); !ok {
		t.Error("a lease without end was not renewed")
	}
}

// TestSettleTable is what is settled: a lapse as the record itself says, keeping owner and fence; and an unknown by a
// resolution, which replaces both.
func TestSettleTable(t *testing.T) {
	t.Parallel()
	exhausted, over := claimed(driver.LapseRepeat), claimed(driver.LapseRepeat)
	exhausted.Died = 2
	over.RepeatableUntil = epoch.Add(lease)
	again := settled(ended(unknown), resolution(success), epoch.Add(lease))
	for _, c := range []struct {
		name    string
		cur     *driver.Record
		s       *driver.Settlement
		wait    time.Duration
		applied bool
		status  driver.Status
		failure driver.Failure
	}{
		{"lapse: in its lease", claimed(0), &driver.Settlement{}, lease - 1, false, driver.Processing, 0},
		{"lapse: in its grace", claimed(0), &driver.Settlement{}, lease + lease/3 - 1, false, driver.Processing, 0},
		{"lapse: not repeatable", claimed(0), &driver.Settlement{}, lease + lease/3, true, driver.Fail, driver.Unknown},
		{"lapse: repeatable", claimed(driver.LapseRepeat), &driver.Settlement{}, lease + lease/3, true, driver.Fail, driver.Retryable},
		{"lapse: repeatable no more", over, &driver.Settlement{}, 2 * lease, true, driver.Fail, driver.Unknown},
		{"lapse: attempts exhausted", exhausted, &driver.Settlement{}, 2 * lease, true, driver.Fail, driver.Unknown},
		{"lapse: finished", ended(success), &driver.Settlement{}, 2 * lease, false, driver.Success, 0},
		{"lapse: unknown", ended(unknown), &driver.Settlement{}, 2 * lease, false, driver.Fail, driver.Unknown},
		{"resolve: it happened", ended(unknown), resolution(success), lease, true, driver.Success, 0},
		{"resolve: the answer is no", ended(unknown), resolution(final), lease, true, driver.Fail, driver.Final},
		{"resolve: it did not happen", ended(unknown), resolution(retryable), lease, true, driver.Fail, driver.Retryable},
		{"resolve: running", claimed(0), resolution(success), 2 * lease, false, driver.Processing, 0},
		{"resolve: success", ended(success), resolution(final), lease, false, driver.Success, 0},
		{"resolve: final", ended(final), resolution(success), lease, false, driver.Fail, driver.Final},
		{"resolve: retryable", ended(retryable), resolution(success), lease, false, driver.Fail, driver.Retryable},
	} {
		c.s.Fence = c.cur.Fence
		next, applied, w := state.Settle(c.cur, c.s, epoch.Add(c.wait))
		if applied != c.applied || next.Status != c.status || next.Failure != c.failure || (w == state.Update) != applied {
			t.Errorf("%s: applied %v, write %d, %v %v", c.name, applied, w, next.Status, next.Failure)
		}
		if !applied && !reflect.DeepEqual(next, *c.cur) {
			t.Errorf("%s: it changed the record: %+v", c.name, next)
		}
		if applied && c.s.Lapse() && (next.Owner != c.cur.Owner || next.Fence != c.cur.Fence || next.Died != c.cur.Died+1 || next.Error == "") {
			t.Errorf("%s: %+v", c.name, next)
		}
		if applied && !c.s.Lapse() && (next.Owner != c.s.Owner || next.Fence <= c.cur.Fence || next.Died != c.cur.Died || next.Resolution != c.s.Resolution) {
			t.Errorf("%s: %+v", c.name, next)
		}
		if applied && next.ExpiresAt.IsZero() != (next.Failure == driver.Unknown) {
			t.Errorf("%s: expires at %v", c.name, next.ExpiresAt)
		}
		c.s.Fence--
		if _, applied, w := state.Settle(c.cur, c.s, epoch.Add(c.wait)); applied || w != state.Keep {
			t.Errorf("%s: applied to a fence that is not the record's", c.name)
		}
	}
	lost := resolution(success)
	lost.Fence = ended(unknown).Fence
	if next, applied, w := state.Settle(again, lost, epoch.Add(2*lease)); !applied || w != state.Keep || !reflect.DeepEqual(next, *again) {
		t.Errorf("a resolution whose reply was lost: applied %v, write %d, %+v", applied, w, next)
	}
	lost.Outcome = final
	if _, applied, _ := state.Settle(again, lost, epoch.Add(2*lease)); applied {
		t.Error("a second, different resolution was applied")
	}
	if _, applied, w := state.Settle(nil, lost, epoch); applied || w != state.Keep {
		t.Error("a record that is not there was settled")
	}
}

// TestMatchesTable is what a scan chooses.
func TestMatchesTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                       string
		r                          *driver.Record
		wait                       time.Duration
		all, lapsed, open, unclear bool
	}{
		{"held", claimed(0), 0, true, false, true, false},
		{"lapsed", claimed(0), 2 * lease, true, true, true, false},
		{"unknown", ended(unknown), 2 * lease, true, false, false, true},
		{"success", ended(success), 2 * lease, true, false, false, false},
		{"success, expired", ended(success), 2 * time.Hour, true, false, false, false},
		{"final", ended(final), 2 * lease, true, false, false, false},
	} {
		for which, want := range map[driver.Which]bool{driver.All: c.all, driver.Lapsed: c.lapsed, driver.Open: c.open, driver.Unclear: c.unclear} {
			if got := state.Matches(which, c.r, epoch.Add(c.wait)); got != want {
				t.Errorf("%s: scan %d chooses it: %v", c.name, which, got)
			}
		}
	}
}

// TestProgressTable is who may write steps: an intent needs an unlapsed lease, a result only that nobody came.
func TestProgressTable(t *testing.T) {
	t.Parallel()
	lapse := settled(claimed(driver.LapseRepeat), &driver.Settlement{}, epoch.Add(2*lease))
	endless, overtaken := claimed(0), claimed(0)
	endless.LeaseUntil = time.Time{}
	overtaken.StepsVersion = 6
	for _, c := range []struct {
		name           string
		cur            *driver.Record
		owner          byte
		by             int64 // beside the record's fence
		wait           time.Duration
		intent, result bool
	}{
		{"in its lease", claimed(0), 1, 0, lease - 1, true, true},
		{"when it is over", claimed(0), 1, 0, lease, false, true},
		{"without a lease", endless, 1, 0, 1000 * time.Hour, true, true},
		{"settled to retryable", lapse, 1, 0, 3 * lease, false, true},
		{"unknown", ended(unknown), 1, 0, 2 * time.Second, false, true},
		{"its own retryable", ended(retryable), 1, 0, 2 * time.Second, false, false},
		{"success", ended(success), 1, 0, 2 * time.Second, false, false},
		{"final", ended(final), 1, 0, 2 * time.Second, false, false},
		{"by another", claimed(0), 2, 0, 0, false, false},
		{"with an old fence", claimed(0), 1, -1, 0, false, false},
		{"overtaken", overtaken, 1, 0, 0, false, false},
		{"nothing there", nil, 1, 0, 0, false, false},
	} {
		for intent, want := range map[bool]bool{true: c.intent, false: c.result} {
			p := driver.Progress{Owner: driver.Owner{c.owner}, Fence: epoch.UnixMicro() + c.by, Intent: intent, Lease: lease,
				Steps: []driver.Step{{Name: "bank", State: driver.StepBegun}}, OnLapse: driver.LapseRepeat, RepeatableFor: time.Hour, Version: 5}
			now := epoch.Add(c.wait)
			next, ok := state.Progress(c.cur, &p, now)
			if ok != want {
				t.Errorf("%s, intent %v: %v", c.name, intent, ok)
			}
			if !ok {
				continue
			}
			want := *c.cur
			want.StepsVersion = 5
			want.Steps, want.OnLapse, want.RepeatableUntil, want.UpdatedAt = p.Steps, p.OnLapse, now.Add(time.Hour), now
			if state.Held(c.cur, now) {
				want.LeaseUntil = now.Add(lease)
			}
			if !reflect.DeepEqual(next, want) {
				t.Errorf("%s, intent %v:\n%+v, want\n%+v", c.name, intent, next, want)
			}
		}
	}
}

// TestStepsFromAttemptToAttempt: results are kept; what has begun is kept after a death, and not after somebody has said that
// nothing happened.
func TestStepsFromAttemptToAttempt(t *testing.T) {
	t.Parallel()
	with := func(r *driver.Record) *driver.Record {
		r.Steps = []driver.Step{{Name: "bank", State: driver.StepDone}, {Name: "sms", State: driver.StepBegun}, {Name: "no", State: driver.StepRefused}}
		return r
	}
	for _, c := range []struct {
		name string
		cur  *driver.Record
		kept int
	}{
		{"lapsed", with(claimed(driver.LapseRepeat)), 3},
		{"settled to retryable", with(settled(claimed(driver.LapseRepeat), &driver.Settlement{}, epoch.Add(2*lease))), 3},
		{"its own retryable", with(ended(retryable)), 2},
		{"resolved: it did not happen", with(settled(ended(unknown), resolution(retryable), epoch.Add(lease))), 2},
	} {
		next, v, _, _ := state.Claim(c.cur, claim(9), epoch.Add(3*lease), 0)
		if v != driver.GotClaim || len(next.Steps) != c.kept || len(c.cur.Steps) != 3 {
			t.Errorf("%s: verdict %d, %+v", c.name, v, next.Steps)
		}
	}
	if next, _, _, _ := state.Claim(with(ended(success)), claim(9), epoch.Add(2*time.Hour), 0); next.Steps != nil {
		t.Errorf("expired: %+v", next.Steps)
	}
}

// TestBegunStepsKeepTheirWindow: the time in which a begun step may be called again counts from its first call, whoever
// runs later; and the time of calls by key from the first attempt's claim, unless somebody has said that there was no call.
func TestBegunStepsKeepTheirWindow(t *testing.T) {
	t.Parallel()
	repeat := func(change func(*driver.Record)) *driver.Record {
		r := claimed(driver.LapseRepeat)
		r.Steps = []driver.Step{{Name: "bank", State: driver.StepBegun}}
		r.RepeatableUntil = epoch.Add(10 * lease)
		change(r)
		return r
	}
	keep := endOf(retryable)
	keep.KeepBegun = true
	for _, c := range []struct {
		name  string
		cur   *driver.Record
		every time.Duration // of the claim
		kept  int
		until time.Duration // from the epoch; zero: none
	}{
		{"taken over", repeat(func(*driver.Record) {}), 20 * lease, 1, 10 * lease},
		{"taken over, the claim's time is shorter", repeat(func(*driver.Record) {}), 5 * lease, 1, 5 * lease},
		{"taken over, the claim has no end", repeat(func(*driver.Record) {}), 0, 1, 10 * lease},
		{"settled lapse", settled(repeat(func(*driver.Record) {}), &driver.Settlement{}, epoch.Add(2*lease)), 20 * lease, 1, 10 * lease},
		{"ended, and can't speak for its steps", func() *driver.Record {
			r, applied, _ := state.Finish(repeat(func(*driver.Record) {}), keep, epoch.Add(lease))
			if again, twice, _ := state.Finish(&r, keep, epoch.Add(lease)); !applied || !twice || again.Owner != r.Owner {
				t.Error("an end that keeps its begun steps was not taken twice")
			}
			return &r
		}(), 20 * lease, 1, 10 * lease},
		{"ended, nothing happened", func() *driver.Record {
			r, _, _ := state.Finish(repeat(func(*driver.Record) {}), endOf(retryable), epoch.Add(lease))
			return &r
		}(), 20 * lease, 0, 20 * lease},
		{"resolved: nothing happened", settled(repeat(func(r *driver.Record) { r.Status, r.Failure = driver.Fail, driver.Unknown }), resolution(retryable), epoch.Add(lease)), 20 * lease, 0, 23 * lease},
	} {
		cl := claim(9)
		cl.OnLapse, cl.RepeatableFor = driver.LapseRepeat, c.every
		next, v, _, _ := state.Claim(c.cur, cl, epoch.Add(3*lease), 0)
		until := epoch.Add(c.until)
		if v != driver.GotClaim || len(next.Steps) != c.kept || !next.RepeatableUntil.Equal(until) {
			t.Errorf("%s: verdict %d, %d steps, until %v, want %v", c.name, v, len(next.Steps), next.RepeatableUntil, until)
		}
	}
}

// TestResolutionTellsOfSteps: what it says takes the place of the steps, so that the next attempt goes on from there.
func TestResolutionTellsOfSteps(t *testing.T) {
	t.Parallel()
	cur := ended(unknown)
	cur.Steps, cur.StepsVersion = []driver.Step{{Name: "bank", State: driver.StepBegun}, {Name: "sms", State: driver.StepBegun}}, 3
	s := resolution(retryable)
	s.Steps = []driver.Step{{Name: "bank", State: driver.StepDone}}
	r := settled(cur, s, epoch.Add(lease))
	if len(r.Steps) != 1 || r.Steps[0].State != driver.StepDone || r.StepsVersion != 4 {
		t.Errorf("%+v", r)
	}
	if next, v, _, _ := state.Claim(r, claim(9), epoch.Add(2*lease), 0); v != driver.GotClaim || len(next.Steps) != 1 {
		t.Errorf("verdict %d, %+v", v, next.Steps)
	}
}
