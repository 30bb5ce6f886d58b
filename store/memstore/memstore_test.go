package memstore_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/store/memstore"
	"github.com/onceward/onceward/store/storetest"
)

var (
	_ driver.Sweeper   = (*memstore.Store)(nil)
	_ driver.StepStore = (*memstore.Store)(nil)
)

func harness() storetest.Harness {
	return storetest.Harness{
		Open: func(storetest.T) driver.Store { return memstore.New(nil) },
		Edit: func(t storetest.T, s driver.Store, id driver.ID, change func(*driver.Record)) {
			snap, err := s.Get(t.Context(), id)
			if err != nil {
				t.Fatalf("edit: %v", err)
			}
			change(&snap.Record)
			s.(*memstore.Store).Put(snap.Record)
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness())
}

func TestModel(t *testing.T) {
	t.Parallel()
	h := harness()
	storetest.Model(t, &h, uint64(time.Now().UnixNano()), 100_000)
}

func claimOf(text string) driver.Claim {
	sum, _ := fingerprint.Of(nil)
	c := driver.Claim{Operation: "pay", Key: text, Fingerprint: sum, Owner: driver.Owner{1}, Lease: time.Minute, Timeout: time.Minute, Retention: time.Hour, MaxAttempts: 1}
	c.ID = driver.Identify(c.Scope, c.Operation, c.Key)
	return c
}

func endOf(c driver.Claim, got driver.Claimed, data string) driver.Finish {
	return driver.Finish{Claim: c, Fence: got.Record.Fence, Attempt: got.Record.Attempt, Died: got.Record.Died,
		Outcome: driver.Outcome{Status: driver.Success, Result: driver.Result{Data: []byte(data)}}}
}

// done claims and finishes a key.
func done(t *testing.T, s *memstore.Store, text string) driver.Record {
	t.Helper()
	c := claimOf(text)
	got, err := s.Claim(t.Context(), c)
	if err != nil || got.Verdict != driver.GotClaim {
		t.Fatalf("claim of %q: verdict %d, %v", text, got.Verdict, err)
	}
	end, err := s.Finish(t.Context(), endOf(c, got, text))
	if err != nil || !end.Applied {
		t.Fatalf("finish of %q: applied %v, %v", text, end.Applied, err)
	}
	return end.Record
}

// TestCancelledCallsChangeNothing: a caller that has gone is told so, and leaves the store as it was.
func TestCancelledCallsChangeNothing(t *testing.T) {
	t.Parallel()
	s := memstore.New(nil)
	c := claimOf("k")
	got, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"claim": func() error { _, err := s.Claim(gone, claimOf("other")); return err },
		"renew": func() error {
			return s.Renew(gone, driver.Renewal{ID: c.ID, Owner: c.Owner, Fence: got.Record.Fence, Lease: time.Hour})
		},
		"finish": func() error { _, err := s.Finish(gone, endOf(c, got, "r")); return err },
		"settle": func() error {
			_, err := s.Settle(gone, driver.Settlement{ID: c.ID, Fence: got.Record.Fence})
			return err
		},
		"get":   func() error { _, err := s.Get(gone, c.ID); return err },
		"scan":  func() error { _, err := s.Scan(gone, driver.Scan{Limit: 1}); return err },
		"purge": func() error { _, err := s.Purge(gone, driver.Purge{IDs: []driver.ID{c.ID}}); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	page, err := s.Scan(t.Context(), driver.Scan{Limit: 10})
	if err != nil || len(page.Snapshots) != 1 || !reflect.DeepEqual(page.Snapshots[0].Record, got.Record) {
		t.Errorf("%+v, %v; want %+v", page.Snapshots, err, got.Record)
	}
}
