//go:build !race

package oncehttp_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/fingerprint"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/memstore"
)

// TestAllocations: what a guarded request allocates beyond its guard and store. It is not parallel: AllocsPerRun counts
// for the whole process. The race detector makes allocations of its own.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	payload, created, kind := []byte(`{"amount":4200}`), []byte(`{"id":"pay_1"}`), []string{"application/json"}
	const runs = 300
	measure := func(do func(op *onceward.Op, name string)) (first, replay float64) {
		g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true})
		if err != nil {
			t.Fatal(err)
		}
		op, err := g.Define(onceward.Operation{Name: "pay"})
		if err != nil {
			t.Fatal(err)
		}
		names := make([]string, runs+1) // AllocsPerRun runs once more, to warm up
		for i := range names {
			names[i] = "k" + strconv.Itoa(i)
		}
		next := 0
		run := func() {
			do(op, names[next])
			next = (next + 1) % len(names)
		}
		return testing.AllocsPerRun(runs, run), testing.AllocsPerRun(runs, run)
	}

	r := httptest.NewRequest("POST", "/pay", nil)
	r.ContentLength = int64(len(payload))
	r.Header["Content-Type"] = kind
	w, content, keys := &sink{h: http.Header{}}, bytes.NewReader(payload), make([]string, 1)
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = kind
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(created)
	})
	var h http.Handler
	first, replay := measure(func(op *onceward.Op, name string) {
		if h == nil {
			once, err := oncehttp.New(op, nil)
			if err != nil {
				t.Fatal(err)
			}
			h = once(plain)
		}
		content.Reset(payload)
		r.Body = body{content}
		keys[0] = name
		r.Header["Idempotency-Key"] = keys
		clear(w.h)
		if h.ServeHTTP(w, r); w.status != http.StatusCreated {
			t.Fatal(w.status)
		}
	})
	sum, err := fingerprint.Of(payload)
	if err != nil {
		t.Fatal(err)
	}
	result := onceward.Result{Codec: "http", Meta: []byte("201\nContent-Type:application/json"), Data: created}
	guardFirst, guardReplay := measure(func(op *onceward.Op, name string) {
		k, err := key.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := op.Guard().Begin(t.Context(), op, onceward.Call{Key: k, Fingerprint: sum})
		if err == nil && d.Kind == onceward.KindRun {
			_, err = d.Attempt.Succeed(t.Context(), result)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("first %v of %v, replay %v of %v", first-guardFirst, first, replay-guardReplay, replay)
	if own := first - guardFirst; own > 6 {
		t.Errorf("a first execution makes %v allocations of its own", own)
	}
	if own := replay - guardReplay; own > 2 {
		t.Errorf("a replay makes %v allocations of its own", own)
	}
}
