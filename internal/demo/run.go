package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// Options of Run. Every field but Progress is required.
type Options struct {
	Users     int
	Speed     float64 // how much faster than in the story time runs
	Store     driver.Store
	StoreName string
	Progress  io.Writer // a terminal; nil for none
}

// Run lives through the accident twice.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Users < 1 || o.Speed < 1 || o.Speed > 2000 || o.Store == nil {
		return Report{}, errors.New("demo: users must be at least 1 and speed 1 to 2000")
	}
	rep := Report{Users: o.Users, Speed: o.Speed, Store: o.StoreName}
	var err error
	if rep.V0, err = o.side(ctx, "V0", false); err != nil {
		return rep, err
	}
	rep.V3, err = o.side(ctx, "V3", true)
	return rep, err
}

func (o *Options) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / o.Speed) }

func (o *Options) side(ctx context.Context, name string, guarded bool) (side Side, err error) {
	start := time.Now()
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * atOnce, MaxIdleConns: 8 * atOnce}
	client := &http.Client{Transport: transport}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()

	s := &shop{client: client}
	for _, p := range []struct {
		into  **service
		name  string
		delay time.Duration
	}{{&s.bank, "bank", o.scaled(11 * time.Second)}, {&s.orders, "order", 0}, {&s.sms, "sms", 0}, {&s.points, "points", 0}} {
		if *p.into, err = startService(ctx, p.name, p.delay); err != nil {
			return side, err
		}
		defer func() { err = errors.Join(err, (*p.into).stop(ending)) }()
	}
	// Before the servers stop: they would wait for connections that were dialled and never used.
	defer transport.CloseIdleConnections()
	handler, closeGuard, err := o.handler(s, guarded)
	if err != nil {
		return side, err
	}
	srv, url, done, err := listen(ctx, handler)
	if err != nil {
		return side, err
	}
	c := &crowd{url: url, client: client, patience: o.scaled(8 * time.Second), second: o.scaled(time.Second), keyed: guarded}
	c.run(ctx, o.Users, func(n int) { o.progress(name, n) })

	// The shop ends what it began before anybody counts.
	transport.CloseIdleConnections()
	if err := errors.Join(stop(ending, srv, done), closeGuard(ending)); err != nil {
		return side, err
	}
	if ctx.Err() != nil {
		return side, context.Cause(ctx)
	}
	side, err = o.count(ctx, s, c)
	side.Took = time.Since(start)
	return side, err
}

func (o *Options) handler(s *shop, guarded bool) (http.Handler, func(context.Context) error, error) {
	if !guarded {
		return http.HandlerFunc(s.pay), func(context.Context) error { return nil }, nil
	}
	h, guard, err := s.guarded(o.Store)
	return h, func(ctx context.Context) error { return closed(ctx, guard) }, err
}

func closed(ctx context.Context, g *onceward.Guard) error {
	_, err := g.Close(ctx)
	return err
}

func (o *Options) progress(name string, n int) {
	if o.Progress == nil || n%10 != 0 && n != o.Users {
		return
	}
	const width = 40
	full := n * width / o.Users
	end := ""
	if n == o.Users {
		end = "\n"
	}
	_, _ = fmt.Fprintf(o.Progress, "\r%s [%-*s] %d/%d users%s", name, width, "========================================"[:full], n, o.Users, end)
}

// count reads the ledgers.
func (o *Options) count(ctx context.Context, s *shop, c *crowd) (side Side, err error) {
	charges, err := ledger(ctx, c.client, s.bank.url)
	if err != nil {
		return side, err
	}
	perUser := map[int]int{}
	for _, e := range charges {
		perUser[e.User]++
	}
	for _, n := range perUser {
		if n > 1 {
			side.ChargedTwice++
			side.Overcharged += int64(n-1) * price
		}
	}
	side.Charges, side.chargedNothing = len(charges), o.Users-len(perUser)
	for _, p := range []struct {
		at   *service
		into *int
	}{{s.orders, &side.Orders}, {s.sms, &side.SMS}, {s.points, &side.Points}} {
		rows, err := ledger(ctx, c.client, p.at.url)
		if err != nil {
			return side, err
		}
		*p.into = len(rows)
	}
	side.Succeeded, side.Receipts, side.Mixed = c.seen.succeeded, c.seen.receipts, c.seen.mixed
	side.Lost, side.Replayed, side.failed = c.seen.lost, c.seen.replayed, c.seen.failed
	return side, nil
}
