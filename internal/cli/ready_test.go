package cli

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/store/faultstore"
	"github.com/onceward/onceward/store/memstore"
)

// TestReadyAsksByWriting: a store that can only be read is not ready, nor one that does not answer; and a prober, however
// eager, asks once a second.
func TestReadyAsksByWriting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		faults := faultstore.New(memstore.New(nil))
		a, err := newAdmin(faults, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		h := a.handler()
		ready := func() (int, string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
			b, _ := io.ReadAll(w.Body)
			return w.Code, string(b)
		}
		expect := func(name string, status int, text string) {
			t.Helper()
			if got, body := ready(); got != status || !strings.Contains(body, text) {
				t.Errorf("%s: %d %s", name, got, body)
			}
		}
		tick := func(d time.Duration) { <-time.After(d) }

		expect("a good store", 200, "ready")
		for range 100 {
			expect("again", 200, "ready")
		}
		if n := faults.Count(faultstore.Claim); n != 1 {
			t.Errorf("the store was asked %d times", n)
		}
		faults.Refuse(faultstore.Claim, -1)
		tick(time.Second)
		expect("no claims", 503, "can't be written: faultstore: the store is away")
		faults.Refuse(faultstore.Claim, 0)
		faults.Refuse(faultstore.Finish, -1)
		tick(time.Second)
		expect("no finishes", 503, "can't be written")
		faults.Refuse(faultstore.Finish, 0)
		tick(2 * time.Second) // the claim lapses
		expect("good again", 200, "ready")

		release := faults.Hold(faultstore.Claim)
		tick(time.Second)
		begun, before := time.Now(), faults.Count(faultstore.Claim)
		expect("it hangs", 503, "does not answer in time")
		expect("it still hangs", 503, "does not answer in time")
		if d := time.Since(begun); d > 5*time.Second || faults.Count(faultstore.Claim) != before+1 {
			t.Errorf("answered after %v by %d claims", d, faults.Count(faultstore.Claim)-before)
		}
		release()
		synctest.Wait()
		expect("it answers", 200, "ready")

		a.observe(onceward.Event{Kind: onceward.EventStore, Outcome: "claim", Err: driver.ErrStoreFull})
		expect("a claim was refused", 503, "has just refused writes")
		tick(tellAgain)
		expect("that was long ago", 200, "ready")
		a.draining.Store(true)
		expect("it drains", 503, "draining")
		a.probe.close()
	})
}
