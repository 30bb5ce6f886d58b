package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// Rounds returns n, or 100,000 when ONCEWARD_LONG is set.
func Rounds(n int) int {
	if os.Getenv("ONCEWARD_LONG") != "" {
		return 100_000
	}
	return n
}

// Model makes n seeded random calls of the store and of package state, and demands the same answers and records. The
// store's own clock, as its answers tell it, is the model's.
func Model(t T, h *Harness, seed uint64, n int) {
	t.Helper()
	m := model{bench: open(t, h), rng: rand.New(rand.NewPCG(seed, 1)), records: map[string]*driver.Record{}}
	for i := range n {
		if what := m.step(); what != "" {
			t.Fatalf("seed %d, call %d: %s", seed, i, what)
		}
	}
}

// model knows what the store should hold, for a handful of keys.
type model struct {
	*bench
	rng     *rand.Rand
	records map[string]*driver.Record
	claims  []driver.Finish // some of the attempts that were made, dead ones too
}

func (m *model) step() string {
	name := string(rune('a' + m.rng.IntN(4)))
	cur := m.records[name]
	switch p := m.rng.IntN(100); {
	case p < 40:
		return m.claim1(name, cur)
	case p < 65:
		return m.finish1()
	case p < 70:
		return m.renew1()
	case p < 75:
		return m.progress1()
	case p < 85:
		return m.settle1(name, cur)
	case cur != nil:
		d := []time.Duration{time.Minute, lease / 2, lease, lease * 2, retention}[m.rng.IntN(5)]
		m.shift(cur.ID, d)
		shiftRecord(cur, d)
	}
	return m.compare(name)
}

// compare demands that the store holds what the model holds.
func (m *model) compare(name string) string {
	cur := m.records[name]
	if cur == nil {
		return ""
	}
	got, err := m.s.Get(m.Context(), cur.ID)
	if err != nil {
		return err.Error()
	}
	return differ("stored", cur, &got.Record)
}

func differ(what string, want, got *driver.Record) string {
	if reflect.DeepEqual(*want, *got) {
		return ""
	}
	return fmt.Sprintf("%s\nwant %+v\ngot  %+v", what, *want, *got)
}

func (m *model) claim1(name string, cur *driver.Record) string {
	c := ask(name)
	c.Fingerprint = sumOf([]string{"body", "body", "body", "other"}[m.rng.IntN(4)])
	c.MaxAttempts = 1 + m.rng.IntN(3)
	if m.rng.IntN(2) == 0 {
		c.OnLapse = driver.LapseRepeat
		c.RepeatableFor = []time.Duration{0, lease, 10 * lease}[m.rng.IntN(3)]
	}
	if cur != nil && m.rng.IntN(10) == 0 {
		c.Owner = cur.Owner // its reply was lost
	}
	got, err := m.s.Claim(m.Context(), c)
	if err != nil {
		return err.Error()
	}
	next, v, takeover, _ := state.Claim(cur, &c, got.Now, 0)
	if v != got.Verdict || takeover != got.Takeover {
		return fmt.Sprintf("claim: verdict %d takeover %v, want %d %v", got.Verdict, got.Takeover, v, takeover)
	}
	if what := differ("claimed", &next, &got.Record); what != "" {
		return what
	}
	m.records[name] = &next
	if v == driver.GotClaim {
		f := driver.Finish{Claim: c, Fence: next.Fence, Attempt: next.Attempt, Died: next.Died}
		if len(m.claims) < 12 {
			m.claims = append(m.claims, f)
		} else {
			m.claims[m.rng.IntN(len(m.claims))] = f
		}
	}
	return m.compare(name)
}

func (m *model) finish1() string {
	if len(m.claims) == 0 {
		return ""
	}
	f := m.claims[m.rng.IntN(len(m.claims))]
	f.Outcome = []driver.Outcome{
		success("r"), success(""), failure(driver.Final, "no"), failure(driver.Retryable, "busy"), failure(driver.Unknown, "cut"),
		{Status: driver.Success, Result: driver.Result{Codec: "http", Tombstone: true}},
	}[m.rng.IntN(6)]
	f.KeepBegun = m.rng.IntN(2) == 0
	got, err := m.s.Finish(m.Context(), f)
	if err != nil {
		return err.Error()
	}
	next, applied, _ := state.Finish(m.records[f.Claim.Key], &f, got.Now)
	if applied != got.Applied {
		return fmt.Sprintf("finish: applied %v, want %v", got.Applied, applied)
	}
	m.records[f.Claim.Key] = &next
	want := next
	if applied {
		leftAlone(&want)
		leftAlone(&got.Record)
	}
	if what := differ("finished", &want, &got.Record); what != "" {
		return what
	}
	return m.compare(f.Claim.Key)
}

// leftAlone empties what driver.Finished need not tell of an outcome that was applied.
func leftAlone(r *driver.Record) {
	r.CreatedAt, r.ClaimedAt, r.LeaseUntil, r.DeadlineAt, r.RepeatableUntil = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	r.Steps, r.StepsVersion = nil, 0
	r.Request, r.Died, r.MaxAttempts, r.OnLapse, r.Lease, r.Retention = nil, 0, 0, 0, 0, 0
}

// renew1 can't see the store's clock: it takes the stored record for the truth where that is within a call's time.
func (m *model) renew1() string {
	if len(m.claims) == 0 {
		return ""
	}
	f := m.claims[m.rng.IntN(len(m.claims))]
	cur := m.records[f.Claim.Key]
	rn := driver.Renewal{ID: f.Claim.ID, Owner: f.Claim.Owner, Fence: f.Fence, Lease: []time.Duration{lease, 2 * lease}[m.rng.IntN(2)]}
	before, err := m.s.Get(m.Context(), rn.ID)
	if err != nil {
		return err.Error()
	}
	err = m.s.Renew(m.Context(), rn)
	next, ok := state.Renew(cur, &rn, before.Now)
	if ok != (err == nil) {
		return fmt.Sprintf("renew: %v, want %v", err, ok)
	}
	if !ok {
		return m.compare(f.Claim.Key)
	}
	after, err := m.s.Get(m.Context(), rn.ID)
	if err != nil {
		return err.Error()
	}
	late := after.Record.UpdatedAt.Sub(next.UpdatedAt)
	if late < 0 || after.Record.UpdatedAt.After(after.Now) {
		return fmt.Sprintf("renew at %v is not between %v and %v", after.Record.UpdatedAt, before.Now, after.Now)
	}
	next, _ = state.Renew(cur, &rn, after.Record.UpdatedAt)
	m.records[f.Claim.Key] = &next
	return differ("renewed", &next, &after.Record)
}

// progress1 can't see the store's clock either.
func (m *model) progress1() string {
	s, ok := m.s.(driver.StepStore)
	if len(m.claims) == 0 || !ok {
		return ""
	}
	f := m.claims[m.rng.IntN(len(m.claims))]
	cur := m.records[f.Claim.Key]
	p := driver.Progress{
		ID: f.Claim.ID, Owner: f.Claim.Owner, Fence: f.Fence, Intent: m.rng.IntN(2) == 0, Lease: []time.Duration{lease, 2 * lease}[m.rng.IntN(2)],
		Steps:   []driver.Step{begun("bank"), did("sms", "sent")}[:1+m.rng.IntN(2)],
		Version: int64(m.rng.IntN(3)), OnLapse: driver.OnLapse(m.rng.IntN(2)), RepeatableFor: []time.Duration{0, lease, 10 * lease}[m.rng.IntN(3)],
	}
	before, err := m.s.Get(m.Context(), p.ID)
	if err != nil {
		return err.Error()
	}
	err = s.Progress(m.Context(), p)
	if _, ok := state.Progress(cur, &p, before.Now); ok != (err == nil) {
		return fmt.Sprintf("progress: %v, want %v", err, ok)
	} else if !ok {
		return m.compare(f.Claim.Key)
	}
	after, err := m.s.Get(m.Context(), p.ID)
	if err != nil {
		return err.Error()
	}
	if at := after.Record.UpdatedAt; at.Before(before.Now) || at.After(after.Now) {
		return fmt.Sprintf("progress at %v is not between %v and %v", at, before.Now, after.Now)
	}
	next, _ := state.Progress(cur, &p, after.Record.UpdatedAt)
	m.records[f.Claim.Key] = &next
	return differ("progressed", &next, &after.Record)
}

func (m *model) settle1(name string, cur *driver.Record) string {
	if cur == nil {
		return ""
	}
	s := driver.Settlement{ID: cur.ID, Fence: cur.Fence - int64(m.rng.IntN(4)/3)}
	if m.rng.IntN(2) == 0 {
		s.Outcome = []driver.Outcome{success("r"), failure(driver.Final, "no"), failure(driver.Retryable, "did not")}[m.rng.IntN(3)]
		s.Resolution, s.Owner = "by ann", newOwner()
		if _, ok := m.s.(driver.StepStore); ok && s.Outcome.Failure == driver.Retryable {
			s.Steps = [][]driver.Step{nil, {}, {did("bank", "ref")}}[m.rng.IntN(3)]
		}
	}
	got, err := m.s.Settle(m.Context(), s)
	if err != nil {
		return err.Error()
	}
	next, applied, _ := state.Settle(cur, &s, got.Now)
	if applied != got.Applied {
		return fmt.Sprintf("settle: applied %v, want %v", got.Applied, applied)
	}
	m.records[name] = &next
	if what := differ("settled", &next, &got.Record); what != "" {
		return what
	}
	return m.compare(name)
}
