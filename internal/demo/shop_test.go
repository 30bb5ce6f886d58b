package demo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/store/memstore"
)

// TestUnprotectedShopIsSeen: the clients of V3 before a shop without Onceward do not pass.
func TestUnprotectedShopIsSeen(t *testing.T) {
	t.Parallel()
	o := Options{Users: 10, Speed: 100, Store: memstore.New(nil)}
	rep := Report{Users: o.Users}
	var err error
	if rep.V3, err = o.side(t.Context(), "V3", true, unprotected); err != nil {
		t.Fatal(err)
	}
	rep.V0 = rep.V3
	if rep.OK() == nil {
		t.Fatalf("an unprotected shop passed: %+v", rep.V3)
	}
	if rep.V3.ChargedTwice != 10 || rep.V3.Charges != 21 || rep.V3.Succeeded != 10 {
		t.Fatalf("%+v", rep.V3)
	}
}

func TestServiceHonoursKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		keys []string
		rows int
	}{
		{"no key", []string{"", ""}, 2},
		{"one key", []string{"a", "a"}, 1},
		{"two keys", []string{"a", "b", "a"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bank := startTestService(t, "bank")
			client := testClient(t)
			ids := map[string]string{}
			for _, k := range c.keys {
				r, err := post(t.Context(), bank.url, k, entry{User: 1, Amount: price})
				if err != nil {
					t.Fatal(err)
				}
				var got entry
				if _, err := exchange(client, r, &got); err != nil {
					t.Fatal(err)
				}
				if before := ids[k]; k != "" && before != "" && before != got.ID {
					t.Errorf("key %q was charged as %s and %s", k, before, got.ID)
				}
				ids[k] = got.ID
			}
			rows, err := readLedger(t.Context(), client, bank.url+"/ledger")
			if err != nil || len(rows) != c.rows {
				t.Fatalf("%d rows, want %d: %v, %v", len(rows), c.rows, rows, err)
			}
		})
	}
}

// loseFirst delivers the first request to a host and loses its answer.
type loseFirst struct {
	http.RoundTripper
	host string
	once sync.Once
}

func (l *loseFirst) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	resp, err = l.RoundTripper.RoundTrip(r)
	if r.URL.Host == l.host {
		l.once.Do(func() {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			resp, err = nil, errors.New("connection reset")
		})
	}
	return resp, err
}

// TestLostChargeIsNotRepeated: the bank charged and its answer was lost. V3 may run again, because the second attempt
// sends the same keys.
func TestLostChargeIsNotRepeated(t *testing.T) {
	t.Parallel()
	bank, sms, points := startTestService(t, "bank"), startTestService(t, "sms"), startTestService(t, "points")
	client := testClient(t)
	client.Transport = &loseFirst{RoundTripper: client.Transport, host: bank.url[len("http://"):]}
	s := &shop{orders: newLedger("order"), bank: bank.url, sms: sms.url, points: points.url, client: client}
	h, guard, err := s.guarded(memstore.New(nil), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	k := key.New().Reveal()
	for _, want := range []int{http.StatusBadGateway, http.StatusCreated, http.StatusCreated} {
		r, err := post(t.Context(), "/pay", k, entry{User: 1, Amount: price})
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-User", "1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Fatalf("got %d %s, want %d", w.Code, w.Body, want)
		}
	}
	for name, l := range map[string]*ledger{"orders": s.orders, "bank": bank.ledger, "sms": sms.ledger, "points": points.ledger} {
		if len(l.rows) != 1 {
			t.Errorf("%s: %d entries, want 1", name, len(l.rows))
		}
	}
	if _, err := guard.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func startTestService(t *testing.T, name string) *service {
	t.Helper()
	s, err := startService(t.Context(), name, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// testClient lets go of its connections before the services stop, so make it after them.
func testClient(t *testing.T) *http.Client {
	t.Helper()
	client, closeIdle := newClient()
	t.Cleanup(closeIdle)
	return client
}
