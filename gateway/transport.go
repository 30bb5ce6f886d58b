package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onceward/onceward"
)

// errNotSent marks a failure before a single byte of the request was written: nothing was executed.
var errNotSent = errors.New("gateway: nothing was sent to the upstream")

// onceTransport sends an attempt's request at most once. net/http resends by itself what it takes for repeatable when a
// kept connection dies; under an attempt it is never shown anything of the kind. Where nothing was written, and only there,
// one more try is made on a fresh connection. What runs under no attempt is left to net/http's rules.
type onceTransport struct {
	kept  *http.Transport // keeps connections
	fresh *http.Transport // never reuses one
}

func newOnceTransport() *onceTransport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	base := http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: conn}, nil
		},
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 512,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  true, // the answer passes as it is
		ForceAttemptHTTP2:   false,
		WriteBufferSize:     16 << 10,
		ReadBufferSize:      16 << 10,
	}
	fresh := base.Clone()
	fresh.DisableKeepAlives = true
	return &onceTransport{kept: base.Clone(), fresh: fresh}
}

// RoundTrip implements http.RoundTripper.
func (t *onceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, guarded := onceward.FromContext(r.Context()); !guarded {
		resp, err, sent := try(t.kept, r)
		return resp, wrap(err, sent)
	}
	again := r.GetBody
	if again == nil && (r.Body == nil || r.Body == http.NoBody) {
		again = func() (io.ReadCloser, error) { return http.NoBody, nil }
	}
	resp, err, sent := try(t.kept, once(r))
	if err == nil || sent || again == nil || r.Context().Err() != nil {
		return resp, wrap(err, sent)
	}
	body, bodyErr := again()
	if bodyErr != nil {
		return nil, wrap(err, sent)
	}
	c := *r
	c.Body = body
	resp, err, sent = try(t.fresh, once(&c))
	return resp, wrap(err, sent)
}

// once returns the request as net/http will not resend it. It resends one whose body it can produce again, or that has
// none, if the method is harmless or there is a key.
func once(r *http.Request) *http.Request {
	c := *r
	c.GetBody = nil
	if c.Body != nil && c.Body != http.NoBody {
		return &c
	}
	switch c.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		c.Body = io.NopCloser(emptyBody{}) // net/http looks into it before it says anything of a body on the wire
	default:
		c.Header = hidden(r.Header) // a body of unknown length would go out in chunks, which some services can't read
	}
	return &c
}

// hidden spells the keys' names so that net/http writes them and does not see them.
func hidden(h http.Header) http.Header {
	h = maps.Clone(h)
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if lines, has := h[name]; has {
			delete(h, name)
			h[strings.ToLower(name)] = lines
		}
	}
	return h
}

func wrap(err error, sent bool) error {
	if err != nil && !sent {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	return err
}

// emptyBody is a body of no bytes that net/http does not know to be empty.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }

// try makes one round trip, and reports whether any byte may have been written for it.
func try(t *http.Transport, r *http.Request) (resp *http.Response, err error, sent bool) {
	var mu sync.Mutex
	var conn *countingConn
	var before int64
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			sent = sent || conn != nil && conn.written.Load() != before // net/http has its own tries
			if conn = counting(info.Conn); conn != nil {
				before = conn.written.Load()
			} else {
				sent = true // nobody can tell
			}
		},
	})
	resp, err = t.RoundTrip(r.WithContext(ctx))
	mu.Lock()
	defer mu.Unlock()
	return resp, err, sent || conn != nil && conn.written.Load() != before
}

// counting finds our connection under TLS.
func counting(c net.Conn) *countingConn {
	if inner, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = inner.NetConn()
	}
	own, _ := c.(*countingConn)
	return own
}

// countingConn counts the bytes that were handed to the kernel, counting a failed write as written: some may be out.
type countingConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	return c.Conn.Write(p)
}

func isTimeout(r *http.Request, err error) bool {
	var timeout interface{ Timeout() bool }
	return r.Context().Err() != nil || errors.As(err, &timeout) && timeout.Timeout()
}

// bufferPool serves ReverseProxy's copying.
type bufferPool struct{ pool sync.Pool }

func newBufferPool() *bufferPool {
	return &bufferPool{pool: sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}}
}

// Get implements httputil.BufferPool.
func (p *bufferPool) Get() []byte { return *p.pool.Get().(*[]byte) }

// Put implements httputil.BufferPool.
func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
