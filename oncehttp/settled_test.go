package oncehttp_test

import (
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/store/storetest"
)

// TestWhatAPersonSettled: duplicates of a resolved key get what the resolution says.
func TestWhatAPersonSettled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		o      driver.Outcome
		status int
		body   string
		runs   int64
	}{
		{"happened", driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "json", Data: []byte(`{"id":1}`)}}, 200, `{"id":1}`, 1},
		{"final", driver.Outcome{Status: driver.Fail, Failure: driver.Final, Error: "the bank refused"}, 409, "the bank refused", 1},
		{"did not", driver.Outcome{Status: driver.Fail, Failure: driver.Retryable}, 500, "lost", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
				store := stores.Open(t)
				s := siteOn(t, store, onceward.Operation{}, nil, respond(500, "lost"))
				s.do(t, "POST", "/x", "K", "x")
				snap, err := store.Get(t.Context(), driver.Identify(driver.Scope{}, "http", "K"))
				if err != nil {
					t.Fatal(err)
				}
				settled, err := store.Settle(t.Context(), driver.Settlement{
					ID: snap.Record.ID, Fence: snap.Record.Fence, Outcome: c.o, Resolution: "by ann", Owner: driver.Owner{1},
				})
				if err != nil || !settled.Applied {
					t.Fatalf("%+v %v", settled, err)
				}
				if a := s.do(t, "POST", "/x", "K", "x"); a.status != c.status || !strings.Contains(a.body, c.body) {
					t.Errorf("%+v", a)
				}
				s.wantRuns(t, c.runs)
			})
		})
	}
}
