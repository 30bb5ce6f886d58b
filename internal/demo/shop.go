package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncehttp"
)

// price is what everybody buys for, in fen: ¥199.00.
const price = 19900

// receipt is the shop's answer.
type receipt struct {
	Order  string `json:"order"`
	Charge string `json:"charge"`
	Amount int64  `json:"amount_fen"`
}

// shop is the order service: it writes an order row, charges at the bank, sends an SMS and credits points.
type shop struct {
	orders            *ledger
	bank, sms, points string // URLs
	client            *http.Client
}

// pay is V0: no key, no memory. A real service goes on when its client hangs up, and so does this one.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	s.handle(context.WithoutCancel(r.Context()), w, r, key.Key{})
}

// payOnce is V3: the same work under Onceward, which sees to it that one attempt runs at a time and that its answer is
// kept. Each effect gets a key derived from the client's, the same on every attempt.
func (s *shop) payOnce(w http.ResponseWriter, r *http.Request) {
	k, err := key.ParseHeader(r.Header.Values("Idempotency-Key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.handle(r.Context(), w, r, k)
}

// handle does the work. The zero parent sends no keys.
func (s *shop) handle(ctx context.Context, w http.ResponseWriter, r *http.Request, parent key.Key) {
	var order entry
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	row := order
	row.Key = derived(parent, "order")
	out := receipt{Order: s.orders.enter(row).ID, Amount: order.Amount}
	for _, effect := range []struct{ name, url string }{{"bank", s.bank}, {"sms", s.sms}, {"points", s.points}} {
		sent, err := post(ctx, effect.url, derived(parent, effect.name), order)
		var done entry
		if err == nil {
			_, err = exchange(s.client, sent, &done)
		}
		if err != nil {
			http.Error(w, effect.name+": "+err.Error(), http.StatusBadGateway)
			return
		}
		if effect.name == "bank" {
			out.Charge = done.ID
		}
	}
	answer(w, http.StatusCreated, out)
}

func derived(parent key.Key, effect string) string {
	if parent.IsZero() {
		return ""
	}
	k, _ := key.Derive(parent, effect) // fails only without a parent or a path
	return k.Reveal()
}

// guarded puts Onceward around V3. patience is how long a duplicate waits for the attempt that runs before it is told
// to come back.
func (s *shop) guarded(store driver.Store, patience time.Duration) (http.Handler, *onceward.Guard, error) {
	guard, err := onceward.New(store, nil)
	if err != nil {
		return nil, nil, err
	}
	op, err := guard.Define(onceward.Operation{
		Name:       "demo-pay",
		OnInFlight: onceward.Wait(patience),
		Repeatable: true, // every effect is kept to once by its derived key
	})
	if err != nil {
		return nil, nil, err
	}
	once, err := oncehttp.New(op, &oncehttp.Options{
		RequireKey: true,
		Scope: func(r *http.Request) (onceward.Scope, error) {
			return onceward.Scope{Tenant: "demo", Caller: r.Header.Get("X-User")}, nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	return once(http.HandlerFunc(s.payOnce)), guard, nil
}
