package oncehttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncetest"
	"github.com/onceward/onceward/store/storetest"
)

// TestCaseB001FiftyPosts: 50 posts at once to two servers on the same data. One runs; the others are told to come again, or
// get the first answer, byte for byte.
func TestCaseB001FiftyPosts(t *testing.T) {
	t.Parallel()
	const posts, early = 50, 25 // so many are answered while the first one runs
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		second := store
		if stores.Second != nil {
			second = stores.Second(t, store)
		}
		var conflicts atomic.Int64
		enough := make(chan struct{})
		var sites []*site
		for i, store := range []driver.Store{store, second} {
			sites = append(sites, siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
				<-enough
				w.Header().Set("Location", fmt.Sprint("/payments/of/", i))
				w.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(w, "%d: \x00\xff %d", i, time.Now().UnixNano())
			}))
		}
		answers := make([]answer, posts)
		for _, err := range oncetest.Storm(t, func(i int) (err error) {
			answers[i], err = sites[i%2].try(t, "POST", "/pay", "K", `{}`)
			if err == nil && answers[i].status == 409 && conflicts.Add(1) == early {
				close(enough)
			}
			return err
		}, posts) {
			if err != nil {
				t.Error(err)
			}
		}
		var first *answer
		for i := range answers {
			if answers[i].header.Get("Idempotency-Status") == "executed" {
				first = &answers[i]
			}
		}
		if first == nil || first.status != 201 {
			t.Fatalf("nobody ran: %+v", answers)
		}
		same := func(a answer) {
			t.Helper()
			if a.status != 201 || a.body != first.body || a.header.Get("Location") != first.header.Get("Location") {
				t.Errorf("%+v, the first was %+v", a, *first)
			}
		}
		for _, a := range answers {
			if a.status == 409 {
				if !strings.Contains(a.body, `"code":"in_flight"`) || a.header.Get("Retry-After") == "" {
					t.Errorf("%+v", a)
				}
				continue
			}
			same(a)
		}
		for _, s := range sites {
			same(s.do(t, "POST", "/pay", "K", `{}`))
		}
		if n := sites[0].runs.Load() + sites[1].runs.Load(); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}
