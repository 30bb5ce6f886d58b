package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/onceward/onceward/key"
)

// seen is what the clients saw.
type seen struct {
	mu        sync.Mutex
	succeeded int // clients that saw a success
	receipts  int // different receipts, over all clients
	mixed     int // clients that saw more than one
	lost      int // clicks whose answer the client did not wait for
	replayed  int // successes that were replays
	failed    []error
}

// crowd is the users of one run.
type crowd struct {
	url      string
	client   *http.Client
	patience time.Duration // of a click
	second   time.Duration // how long a second of Retry-After is here
	keyed    bool
	seen     seen
}

const (
	atOnce   = 300 // users at one time
	maxTries = 200 // of one user, so that a fault ends the run
)

// run lets users click, and tells progress after each of them.
func (c *crowd) run(ctx context.Context, users int, progress func(done int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(atOnce, users) {
		wg.Go(func() {
			for user := range next {
				c.user(ctx, user)
				mu.Lock()
				done++
				progress(done)
				mu.Unlock()
			}
		})
	}
	for user := 1; user <= users && ctx.Err() == nil; user++ {
		next <- user
	}
	close(next)
	wg.Wait()
}

// user clicks, loses patience, clicks again; every tenth clicks a third time, success or not.
func (c *crowd) user(ctx context.Context, user int) {
	k := ""
	if c.keyed {
		k = key.New().Reveal() // one intent, one key
	}
	clicks := 2
	if user%10 == 0 {
		clicks = 3
	}
	receipts := map[receipt]bool{}
	var last error
	for click := 1; click <= maxTries; click++ {
		patience := c.patience
		if click >= clicks && !c.keyed {
			patience = time.Minute // nobody would ever see an answer from V0 otherwise
		}
		got, header, err := c.click(ctx, user, k, patience)
		switch {
		case err == nil:
			receipts[got] = true
			c.seen.answered(header)
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			c.seen.gaveUp()
		}
		last = err
		if click >= clicks && err == nil || click >= clicks && !c.keyed {
			break
		}
		var status *statusError
		if errors.As(err, &status) && status.retryAfter > 0 {
			if wait(ctx, time.Duration(status.retryAfter)*c.second) != nil {
				return
			}
		}
	}
	c.seen.ended(user, receipts, last)
}

func (c *crowd) click(ctx context.Context, user int, k string, patience time.Duration) (got receipt, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(entry{User: user, Amount: price})
	if err != nil {
		return got, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/pay", bytes.NewReader(body))
	if err != nil {
		return got, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-User", strconv.Itoa(user))
	if k != "" {
		r.Header.Set("Idempotency-Key", k)
	}
	header, err = exchange(c.client, r, &got)
	return got, header, err
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *seen) answered(header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if header.Get("Idempotent-Replayed") == "true" {
		s.replayed++
	}
}

func (s *seen) gaveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
}

func (s *seen) ended(user int, receipts map[receipt]bool, last error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts += len(receipts)
	switch {
	case len(receipts) > 1:
		s.mixed++
		s.succeeded++
	case len(receipts) == 1:
		s.succeeded++
	default:
		s.failed = append(s.failed, fmt.Errorf("user %d never saw a success: %w", user, last))
	}
}
