package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// bankDelay is how long the bank of the story takes. It charges at once, and answers late.
const bankDelay = 11 * time.Second

// service is somebody else's HTTP service: the bank, the SMS and the points service. POST / has the effect and answers
// after the delay; GET /ledger lists all effects. It honours Idempotency-Key where one is sent, as such services do.
type service struct {
	*server
	ledger *ledger
	delay  time.Duration
}

func startService(ctx context.Context, name string, delay time.Duration) (*service, error) {
	s := &service{ledger: newLedger(name), delay: delay}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", s.post)
	mux.Handle("GET /ledger", s.ledger)
	var err error
	s.server, err = serve(ctx, mux)
	return s, err
}

func (s *service) post(w http.ResponseWriter, r *http.Request) {
	var e entry
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.Key = r.Header.Get("Idempotency-Key")
	e = s.ledger.enter(e)
	if err := wait(r.Context(), s.delay); err != nil { // the caller is gone, or the run is over; the effect stays
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, http.StatusOK, e)
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
