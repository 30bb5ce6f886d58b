package teststore

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server and does to their conversation what networks do. Its zero behaviour is to pass
// everything on. Safe for concurrent use.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	to    string
	mu    sync.Mutex
	open  map[net.Conn]struct{}
	trips int
	rule
}

// rule is what happens to a conversation.
type rule struct {
	refuse bool
	delay  time.Duration
	cut    int64  // bytes to the client until its connection is cut; 0: never
	lose   []byte // a request that holds this is passed on, and its answer is not
	lost   chan struct{}
}

// NewProxy starts a proxy before the server at an address, until the test ends.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), to: to, open: map[net.Conn]struct{}{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		serving.Wait()
	})
	return p
}

// Trips returns how many round trips there were: how often a client spoke after the server had, or first.
func (p *Proxy) Trips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

// Refuse cuts all connections and refuses new ones, until it is called with false.
func (p *Proxy) Refuse(on bool) {
	p.set(func(r *rule) { r.refuse = on })
	if on {
		p.Cut()
	}
}

// Delay holds every answer back.
func (p *Proxy) Delay(d time.Duration) { p.set(func(r *rule) { r.delay = d }) }

// CutAfter cuts the next connection that gets so many bytes from the server from now on; the rest is lost.
func (p *Proxy) CutAfter(bytes int64) { p.set(func(r *rule) { r.cut = bytes }) }

// LoseReply lets the next request that holds text reach the server, waits for the answer, and cuts the connection instead of
// passing it on. The channel is closed then.
func (p *Proxy) LoseReply(text string) <-chan struct{} {
	lost := make(chan struct{})
	p.set(func(r *rule) { r.lose, r.lost = []byte(text), lost })
	return lost
}

// Cut cuts all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *Proxy) set(change func(*rule)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.rule)
}

// conversation is one client's.
type conversation struct {
	client, server net.Conn
	heard          bool          // the server spoke last
	losing         chan struct{} // the answer that comes is lost
}

func (p *Proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	p.mu.Lock()
	refused := p.refuse
	p.mu.Unlock()
	if refused {
		return
	}
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	p.mu.Lock()
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.open, client)
		delete(p.open, server)
		p.mu.Unlock()
	}()
	c := &conversation{client: client, server: server, heard: true}
	var both sync.WaitGroup
	both.Go(func() { pass(client, server, func(b []byte) ([]byte, bool) { return p.asked(c, b), true }) })
	both.Go(func() { pass(server, client, func(b []byte) ([]byte, bool) { return p.told(c, b) }) })
	both.Wait()
}

// pass copies until one side ends, and then ends the other. through says what is passed on, and whether to go on then.
func pass(from, to net.Conn, through func([]byte) ([]byte, bool)) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		b, on := through(buf[:n])
		if _, err := to.Write(b); err != nil || !on {
			return
		}
	}
}

func (p *Proxy) asked(c *conversation, b []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.heard {
		p.trips++
		c.heard = false
	}
	if len(p.lose) > 0 && bytes.Contains(b, p.lose) {
		c.losing, p.lose = p.lost, nil
	}
	return b
}

func (p *Proxy) told(c *conversation, b []byte) (_ []byte, on bool) {
	p.mu.Lock()
	c.heard, on = true, true
	delay, losing := p.delay, c.losing
	switch {
	case losing != nil:
		b, on = nil, false
	case p.cut > 0 && int64(len(b)) >= p.cut:
		b, on, p.cut = b[:p.cut], false, 0
	case p.cut > 0:
		p.cut -= int64(len(b))
	}
	p.mu.Unlock()
	if losing != nil {
		close(losing)
	}
	if delay > 0 {
		<-time.After(delay)
	}
	return b, on
}
