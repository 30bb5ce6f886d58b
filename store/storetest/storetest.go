// Package storetest is the conformance suite of stores. A store that passes it, Model included, decides as package state
// does. The suite never sleeps: it moves a record's stored times back.
//
//	func TestConformance(t *testing.T) { storetest.Run(t, harness) }
//
// The suite is itself proven: on each of a set of deliberately broken stores exactly the cases that name the fault fail.
package storetest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
)

// T is what a case needs of a test; *testing.T has it.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
}

// Harness makes a store testable.
type Harness struct {
	// Open returns a fresh, empty store.
	Open func(t T) driver.Store
	// Second returns another store object on the same data, as another process would have it. Nil: the same object.
	Second func(t T, first driver.Store) driver.Store
	// Edit changes a stored record behind the store's back: it writes every time of what change made of the record that
	// is there. No case changes anything else.
	Edit func(t T, s driver.Store, id driver.ID, change func(*driver.Record))
}

// Case is one named demand.
type Case struct {
	Name string
	Run  func(t T, h *Harness)
}

// Cases returns all cases. The slice is the caller's.
func Cases() []Case {
	var all []Case
	all = append(all, claimCases()...)
	all = append(all, finishCases()...)
	all = append(all, settleCases()...)
	all = append(all, stepCases()...)
	all = append(all, dataCases()...)
	return append(append(all, scanCases()...), purgeCases()...)
}

// Run runs all cases, each on a store of its own. Model is a test beside it.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Run(t, &h)
		})
	}
}

// bench is a store under test with its harness.
type bench struct {
	T
	h *Harness
	s driver.Store
}

func open(t T, h *Harness) *bench { return &bench{t, h, h.Open(t)} }

// shift moves all times of a record back by d, as if d had passed.
func (b *bench) shift(id driver.ID, d time.Duration) {
	b.Helper()
	b.h.Edit(b, b.s, id, func(r *driver.Record) { shiftRecord(r, d) })
}

func shiftRecord(r *driver.Record, d time.Duration) {
	for _, at := range []*time.Time{
		&r.LeaseUntil, &r.DeadlineAt, &r.RepeatableUntil, &r.CreatedAt, &r.ClaimedAt, &r.UpdatedAt, &r.CompletedAt, &r.ExpiresAt,
	} {
		if !at.IsZero() {
			*at = at.Add(-d)
		}
	}
}

// Leases of the cases are long, so that none ends by itself however slow the machine is.
const (
	lease     = time.Hour
	retention = 24 * time.Hour
)

// ask returns a claim of key in the scope of tenant "t", by a fresh owner.
func ask(key string) driver.Claim {
	return identified(driver.Claim{
		Scope: driver.Scope{Tenant: "t"}, Operation: "pay", Key: key, Fingerprint: sumOf("body"), Owner: newOwner(),
		Lease: lease, Timeout: 2 * lease, Retention: retention, MaxAttempts: 5,
	})
}

func repeatable(c driver.Claim) driver.Claim {
	c.OnLapse = driver.LapseRepeat
	return c
}

func identified(c driver.Claim) driver.Claim {
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	return c
}

func newOwner() (o driver.Owner) {
	_, _ = rand.Read(o[:])
	return o
}

func sumOf(text string) fingerprint.Sum {
	h := fingerprint.New()
	h.Text("test", text)
	return h.Sum()
}

func (b *bench) claim(c driver.Claim) driver.Claimed {
	b.Helper()
	got, err := b.s.Claim(b.Context(), c)
	if err != nil {
		b.Fatalf("claim: %v", err)
	}
	return got
}

// wins claims and demands to get the claim.
func (b *bench) wins(c driver.Claim) driver.Claimed {
	b.Helper()
	got := b.claim(c)
	if got.Verdict != driver.GotClaim {
		b.Fatalf("claim: verdict %d, want the claim; record %+v", got.Verdict, got.Record)
	}
	return got
}

// finds claims and demands a verdict.
func (b *bench) finds(c driver.Claim, want driver.Verdict) driver.Claimed {
	b.Helper()
	got := b.claim(c)
	if got.Verdict != want {
		b.Fatalf("claim: verdict %d, want %d; record %+v", got.Verdict, want, got.Record)
	}
	return got
}

func endOf(c driver.Claim, got driver.Claimed, o driver.Outcome) driver.Finish {
	return driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: got.Record.Attempt, Died: got.Record.Died, Outcome: o}
}

func (b *bench) finish(f driver.Finish) driver.Finished {
	b.Helper()
	got, err := b.s.Finish(b.Context(), f)
	if err != nil {
		b.Fatalf("finish: %v", err)
	}
	return got
}

// ends finishes and demands that it was taken, or not.
func (b *bench) ends(f driver.Finish, applied bool) driver.Finished {
	b.Helper()
	got := b.finish(f)
	if got.Applied != applied {
		b.Fatalf("finish: applied %v, want %v; record %+v", got.Applied, applied, got.Record)
	}
	return got
}

func (b *bench) get(id driver.ID) driver.Record {
	b.Helper()
	got, err := b.s.Get(b.Context(), id)
	if err != nil {
		b.Fatalf("get: %v", err)
	}
	return got.Record
}

func (b *bench) settle(s driver.Settlement, applied bool) driver.Settled {
	b.Helper()
	got, err := b.s.Settle(b.Context(), s)
	if err != nil {
		b.Fatalf("settle: %v", err)
	}
	if got.Applied != applied {
		b.Fatalf("settle: applied %v, want %v; record %+v", got.Applied, applied, got.Record)
	}
	return got
}

func success(data string) driver.Outcome {
	return driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Data: []byte(data)}}
}

func failure(kind driver.Failure, text string) driver.Outcome {
	return driver.Outcome{Status: driver.Fail, Failure: kind, Error: text}
}
