package oncehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/teststore"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/storetest"
)

// TestCaseB044WhatFreesTheKey: an answer that says nothing was executed is passed on and not remembered.
func TestCaseB044WhatFreesTheKey(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 407, 408, 421, 425, 429, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
				store := stores.Open(t)
				n := 0
				s := siteOn(t, store, onceward.Operation{}, nil, func(w http.ResponseWriter, _ *http.Request) {
					if n++; n == 1 {
						w.Header().Set("Retry-After", "1")
						w.WriteHeader(status)
						return
					}
					w.WriteHeader(http.StatusCreated)
				})
				if a := s.do(t, "POST", "/x", "K", "x"); a.status != status || a.header.Get("Retry-After") != "1" {
					t.Errorf("%+v", a)
				}
				for range 2 {
					if a := s.do(t, "POST", "/x", "K", "x"); a.status != 201 {
						t.Errorf("%+v", a)
					}
				}
				s.wantRuns(t, 2)
			})
		})
	}
}

// TestCaseB049ServerErrors: a 5xx tells nothing, unless repeating is safe or somebody says what it means.
func TestCaseB049ServerErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		o      onceward.Operation
		opts   *oncehttp.Options
		header string
		status int // of the second
		runs   int64
	}{
		{"unknown", onceward.Operation{}, nil, "", 409, 1},
		{"repeatable", onceward.Operation{Repeatable: true}, nil, "", 500, 2},
		{"the route says final", onceward.Operation{}, &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{500: oncehttp.Final}}, "", 500, 1},
		{"the route says not done", onceward.Operation{}, &oncehttp.Options{OnStatus: map[int]oncehttp.Outcome{500: oncehttp.NotDone}}, "", 500, 2},
		{"the handler says done", onceward.Operation{}, nil, "done", 500, 1},
		{"the handler says not done", onceward.Operation{}, nil, "not-done", 500, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
				store := stores.Open(t)
				s := siteOn(t, store, c.o, c.opts, func(w http.ResponseWriter, _ *http.Request) {
					if c.header != "" {
						w.Header().Set("Onceward-Outcome", c.header)
					}
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, "own words")
				})
				first := s.do(t, "POST", "/x", "K", "x")
				if first.status != 500 || first.body != "own words" || first.header.Get("Onceward-Outcome") != "" {
					t.Errorf("the first caller gets the handler's own answer: %+v", first)
				}
				if c.name == "unknown" && first.header.Get("Idempotency-Status") != "unknown" {
					t.Errorf("%+v", first)
				}
				if a := s.do(t, "POST", "/x", "K", "x"); a.status != c.status {
					t.Errorf("%+v", a)
				}
				s.wantRuns(t, c.runs)
			})
		})
	}
}

func TestCaseB046B048FinalAnswers(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, stores *storetest.Harness) {
		store := stores.Open(t)
		s := siteOn(t, store, onceward.Operation{}, nil, respond(409, "slot taken"))
		first, again := s.do(t, "POST", "/x", "K", `{"otp":0}`), s.do(t, "POST", "/x", "K", `{"otp":0}`)
		if first.status != 409 || again.body != "slot taken" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%+v %+v", first, again)
		}
		if a := s.do(t, "POST", "/x", "K", `{"otp":1}`); a.status != 422 {
			t.Errorf("%+v", a)
		}
		s.wantRuns(t, 1)
	})
}

// TestEveryCodeHasAStatus: the table is exhaustive.
func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	want := map[onceward.Code]int{
		"key_missing": 400, "key_invalid": 400, "scope_missing": 400, "in_flight": 409, "superseded": 409, "outcome_unknown": 409,
		"duplicate": 409, "key_expired": 412, "body_too_large": 413, "mismatch": 422, "too_many": 429, "store_unavailable": 503,
		"store_full": 503, "upstream_unreachable": 503, "corrupt_record": 500, "result_not_kept": 0,
	}
	for _, c := range onceward.Codes() {
		if status, ok := want[c]; !ok || oncehttp.StatusOf(c) != status {
			t.Errorf("%s: %d", c, oncehttp.StatusOf(c))
		}
		delete(want, c)
	}
	if len(want) != 0 {
		t.Errorf("no code: %v", want)
	}
}
