package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"time"

	"github.com/onceward/onceward/key"
)

const (
	patience = 8 * time.Second // of a click, in the story
	atOnce   = 300             // users at one time
	giveUp   = time.Minute     // for everything one user does, in the story and beside it, so that a fault ends the run
)

var errPatience = errors.New("demo: the user's patience is over")

// crowd is the users of one run.
type crowd struct {
	url    string
	client *http.Client
	scaled func(time.Duration) time.Duration
	keyed  bool // one Idempotency-Key for each intent
	seen   seen
}

// seen is what the clients saw.
type seen struct {
	mu sync.Mutex

	answers         // summed over all users
	succeeded   int // users that saw a success
	most        int // receipts of the user that saw most
	receipts    map[receipt]bool
	unfortunate error // of a user that never saw a success
}

// answers is what one user was told.
type answers struct {
	open        int // clicks whose answer the user did not wait for, each settled below or never
	byReplay    int // settled by the first answer, replayed
	byRunning   int // settled by running the work: the click had not begun it
	replayed    int // answers that were replays
	sentAway    int // answers that said to come back later
	outstanding int // open and not settled yet
}

// run lets the users click, and tells progress after each of them.
func (c *crowd) run(ctx context.Context, users int, progress func(done int)) {
	c.seen.receipts = map[receipt]bool{}
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

// user clicks twice, every tenth three times: the finger is on its way before the answer is. After the last click
// they wait, as otherwise nobody would ever see an answer of V0.
func (c *crowd) user(ctx context.Context, user int) {
	ctx, cancel := context.WithTimeout(ctx, giveUp+c.scaled(giveUp))
	defer cancel()
	k := ""
	if c.keyed {
		k = key.New().Reveal() // one intent, one key
	}
	clicks := 2
	if user%10 == 0 {
		clicks = 3
	}
	var told answers
	receipts := map[receipt]bool{}
	var last error
	for n := 1; n <= clicks; n++ {
		var got receipt
		if got, last = c.click(ctx, user, k, n == clicks, &told); last == nil {
			receipts[got] = true
		}
	}
	c.seen.add(user, told, receipts, last)
}

// click asks until there is a success, the user's patience is over, or, without a key, there is any answer: who asks
// again without a key buys again.
func (c *crowd) click(ctx context.Context, user int, k string, stay bool, told *answers) (got receipt, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lose := time.AfterFunc(time.Hour, func() { cancel(errPatience) })
	defer lose.Stop()
	if !stay {
		// Patience begins when the request is on the wire: connecting does not run faster with the story's clock.
		once := sync.OnceFunc(func() { lose.Reset(c.scaled(patience)) })
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once() }})
	}
	for {
		var header http.Header
		header, err = c.ask(ctx, user, k, &got)
		switch {
		case err == nil:
			told.success(header, c.keyed)
			return got, nil
		case ctx.Err() != nil:
			err = context.Cause(ctx)
			if errors.Is(err, errPatience) {
				told.open++
				told.outstanding++
			}
			return got, err
		case k == "":
			return got, err
		}
		after := 1
		var status *statusError
		if errors.As(err, &status) {
			if status.status < 500 && status.retryAfter == 0 {
				return got, err // the answer is no
			}
			told.sentAway++
			after = max(status.retryAfter, 1)
		}
		_ = wait(ctx, c.scaled(time.Duration(after)*time.Second)) // the next turn sees that it was cut short
	}
}

func (c *crowd) ask(ctx context.Context, user int, k string, got *receipt) (http.Header, error) {
	r, err := post(ctx, c.url+"/pay", k, entry{User: user, Amount: price})
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-User", strconv.Itoa(user))
	return exchange(c.client, r, got)
}

// success notes a success. With a key it is the answer to every click before it, too.
func (a *answers) success(header http.Header, keyed bool) {
	replay := header.Get("Idempotent-Replayed") == "true"
	if replay {
		a.replayed++
	}
	switch {
	case !keyed:
	case replay:
		a.byReplay += a.outstanding
		a.outstanding = 0
	default:
		a.byRunning += a.outstanding
		a.outstanding = 0
	}
}

func (s *seen) add(user int, told answers, receipts map[receipt]bool, last error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += told.open
	s.byReplay += told.byReplay
	s.byRunning += told.byRunning
	s.replayed += told.replayed
	s.sentAway += told.sentAway
	s.outstanding += told.outstanding
	for r := range receipts {
		s.receipts[r] = true
	}
	s.most = max(s.most, len(receipts))
	if len(receipts) > 0 {
		s.succeeded++
	} else if s.unfortunate == nil {
		s.unfortunate = fmt.Errorf("user %d never saw a success: %w", user, last)
	}
}
