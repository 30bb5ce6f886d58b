package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncehttp"
)

// price is what everybody buys for, in minor units: ¥199.00.
const price = 19900

// receipt is the shop's answer.
type receipt struct {
	Order  string `json:"order"`
	Charge string `json:"charge"`
	Amount int64  `json:"amount"`
}

// shop is the order service: charge at the bank, write the order, tell by SMS, credit points.
type shop struct {
	bank, orders, sms, points *service
	client                    *http.Client
}

// pay is V0: no key, no state, no memory. A real service goes on when its client hangs up, and so does this one.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	s.handle(context.WithoutCancel(r.Context()), w, r, func(string) (string, error) { return "", nil })
}

// payOnce is V3's handler: the same work, run under Onceward, with a key for each of its effects.
func (s *shop) payOnce(w http.ResponseWriter, r *http.Request) {
	k, err := key.ParseHeader(r.Header.Values("Idempotency-Key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.handle(r.Context(), w, r, func(effect string) (string, error) {
		derived, err := key.Derive(k, effect)
		return derived.Reveal(), err
	})
}

func (s *shop) handle(ctx context.Context, w http.ResponseWriter, r *http.Request, keyOf func(effect string) (string, error)) {
	var order entry
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := receipt{Amount: price}
	for _, effect := range []struct {
		at   *service
		into *string
	}{{s.bank, &out.Charge}, {s.orders, &out.Order}, {s.sms, nil}, {s.points, nil}} {
		k, err := keyOf(effect.at.name)
		var done entry
		if err == nil {
			err = call(ctx, s.client, http.MethodPost, effect.at.url+"/", k, order, &done)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		if effect.into != nil {
			*effect.into = done.ID
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(out)
}

// guarded puts Onceward around V3.
func (s *shop) guarded(store driver.Store) (http.Handler, *onceward.Guard, error) {
	guard, err := onceward.New(store, nil)
	if err != nil {
		return nil, nil, err
	}
	op, err := guard.Define(onceward.Operation{Name: "demo-pay"})
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

// statusError is an answer that is not a success.
type statusError struct {
	status     int
	retryAfter int // seconds
	text       string
}

func (e *statusError) Error() string { return fmt.Sprintf("demo: status %d: %s", e.status, e.text) }

// call makes one HTTP call with JSON both ways.
func call(ctx context.Context, client *http.Client, method, url, k string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if k != "" {
		r.Header.Set("Idempotency-Key", k)
	}
	_, err = exchange(client, r, out)
	return err
}

// exchange sends r, decodes a success into out, and returns the answer's headers.
func exchange(client *http.Client, r *http.Request, out any) (http.Header, error) {
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		e := &statusError{status: resp.StatusCode, text: string(text)}
		_, _ = fmt.Sscan(resp.Header.Get("Retry-After"), &e.retryAfter)
		return resp.Header, e
	}
	return resp.Header, json.Unmarshal(text, out)
}
