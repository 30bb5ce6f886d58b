package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/onceward/onceward/driver"
)

// Options of Run. Users, Speed and Store are required.
type Options struct {
	Users     int          // at least 1; the story has 3700
	Speed     float64      // how much faster than in the story time runs, 1 to 2000
	Store     driver.Store // where V3 keeps its records; it stays the caller's to close
	StoreName string       // for the report
	Progress  io.Writer    // a terminal, which gets one line for each version; nil: none
}

// Run lives through the accident twice. When it returns, cancelled or not, nothing of it runs any more.
func Run(ctx context.Context, o Options) (Report, error) {
	rep := Report{Users: o.Users, Speed: o.Speed, Store: o.StoreName}
	if err := o.Check(); err != nil {
		return rep, err
	}
	var err error
	if rep.V0, err = o.side(ctx, "V0", false, unprotected); err != nil {
		return rep, err
	}
	rep.V3, err = o.side(ctx, "V3", true, o.protected)
	return rep, err
}

// Check returns everything that is wrong with the options.
func (o *Options) Check() error {
	var problems []error
	if o.Users < 1 {
		problems = append(problems, fmt.Errorf("demo: users %d: at least 1 is needed", o.Users))
	}
	if !(o.Speed >= 1 && o.Speed <= 2000) { // not a number is neither
		problems = append(problems, fmt.Errorf("demo: speed %g: use 1 to 2000", o.Speed))
	}
	if o.Store == nil {
		problems = append(problems, errors.New("demo: Options.Store is missing: it keeps the records of V3"))
	}
	return errors.Join(problems...)
}

func (o *Options) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / o.Speed) }

// front makes the handler of POST /pay, and what to close once its requests have ended.
type front func(*shop) (h http.Handler, finish func(context.Context) error, err error)

func unprotected(s *shop) (http.Handler, func(context.Context) error, error) {
	return http.HandlerFunc(s.pay), func(context.Context) error { return nil }, nil
}

func (o *Options) protected(s *shop) (http.Handler, func(context.Context) error, error) {
	h, guard, err := s.guarded(o.Store, o.scaled(patience/2))
	if err != nil {
		return nil, nil, err
	}
	return h, func(ctx context.Context) error { _, err := guard.Close(ctx); return err }, nil
}

// side runs one version with services of its own, and reads their ledgers.
func (o *Options) side(ctx context.Context, name string, keyed bool, open front) (side Side, err error) {
	start := time.Now()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()

	s := &shop{orders: newLedger("order")}
	var closeInside func()
	s.client, closeInside = newClient()
	at := map[string]string{} // ledgers' URLs
	for _, p := range []struct {
		name  string
		delay time.Duration
		url   *string
	}{{"bank", o.scaled(bankDelay), &s.bank}, {"sms", 0, &s.sms}, {"points", 0, &s.points}} {
		v, startErr := startService(ctx, p.name, p.delay)
		if startErr != nil {
			return side, startErr
		}
		defer func() { err = errors.Join(err, v.stop(ending)) }()
		*p.url, at[p.name] = v.url, v.url+"/ledger"
	}
	// The orders have a port of their own: POST /pay is stopped before they are counted.
	mux := http.NewServeMux()
	mux.Handle("GET /orders", s.orders)
	office, err := serve(ctx, mux)
	if err != nil {
		return side, err
	}
	defer func() { err = errors.Join(err, office.stop(ending)) }()
	at["orders"] = office.url + "/orders"
	defer closeInside() // before the servers stop: they would wait for connections that were dialled and never used

	c := &crowd{scaled: o.scaled, keyed: keyed}
	if err := o.open(ctx, ending, name, s, c, open); err != nil {
		return side, err
	}
	if side, err = o.count(ctx, s.client, at); err != nil {
		return side, err
	}
	side.sawBy(c)
	side.Took = time.Since(start)
	return side, nil
}

// open opens the shop to the crowd. When it returns, the shop has ended what it began.
func (o *Options) open(ctx, ending context.Context, name string, s *shop, c *crowd, open front) error {
	h, finish, err := open(s)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /pay", h)
	door, err := serve(ctx, mux)
	if err != nil {
		return errors.Join(err, finish(ending))
	}
	var closeIdle func()
	c.url = door.url
	c.client, closeIdle = newClient()
	c.run(ctx, o.Users, func(n int) { o.progress(name, n) })
	closeIdle()
	return errors.Join(context.Cause(ctx), door.stop(ending), finish(ending))
}

func (o *Options) progress(name string, n int) {
	if o.Progress == nil || n%10 != 0 && n != o.Users {
		return
	}
	const width = 40
	end := ""
	if n == o.Users {
		end = "\n"
	}
	fmt.Fprintf(o.Progress, "\r%s [%-*s] %d/%d users%s", name, width, strings.Repeat("=", n*width/o.Users), n, o.Users, end)
}

// count reads the ledgers.
func (o *Options) count(ctx context.Context, client *http.Client, at map[string]string) (side Side, err error) {
	notOnce := map[int]bool{}
	for _, l := range []struct {
		name string
		into *int
	}{{"bank", &side.Charges}, {"orders", &side.Orders}, {"sms", &side.SMS}, {"points", &side.Points}} {
		rows, err := readLedger(ctx, client, at[l.name])
		if err != nil {
			return side, fmt.Errorf("demo: the ledger %s can't be read: %w", l.name, err)
		}
		*l.into = len(rows)
		perUser := make(map[int]int, o.Users)
		for _, e := range rows {
			perUser[e.User]++
			if l.name == "bank" && e.Key != "" {
				side.WithKey++
			}
			if l.name == "bank" && perUser[e.User] > 1 {
				side.Overcharged += e.Amount
			}
		}
		for user := 1; user <= o.Users; user++ {
			if perUser[user] != 1 {
				notOnce[user] = true
			}
			if l.name == "bank" && perUser[user] > 1 {
				side.ChargedTwice++
			}
		}
	}
	side.NotOnce = len(notOnce)
	return side, nil
}

// sawBy adds what the clients saw.
func (s *Side) sawBy(c *crowd) {
	saw := &c.seen
	s.Succeeded, s.Receipts, s.MostReceipts = saw.succeeded, len(saw.receipts), saw.most
	s.Open, s.ByReplay, s.ByRunning, s.NeverSettled = saw.open, saw.byReplay, saw.byRunning, saw.outstanding
	s.Replayed, s.SentAway = saw.replayed, saw.sentAway
	if saw.unfortunate != nil {
		s.Failure = saw.unfortunate.Error()
	}
}
