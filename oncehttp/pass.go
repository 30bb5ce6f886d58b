package oncehttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// pass serves a request that is not guarded. The handler does not know that, so its word about the outcome is taken off
// here too.
func (m *middleware) pass(w http.ResponseWriter, r *http.Request) {
	p := &passing{w}
	m.next.ServeHTTP(p, r)
	p.strip()
}

func (m *middleware) passKeyless(w http.ResponseWriter, r *http.Request) {
	m.op.Unclaimed("none", nil)
	w.Header().Set(HeaderStatus, "none")
	m.pass(w, r)
}

// passing is the writer beneath it, without the headers that are for us. What that can do, it can do.
type passing struct{ http.ResponseWriter }

func (p *passing) strip() {
	h := p.Header()
	delete(h, HeaderOutcome)
	delete(h, HeaderReason)
}

func (p *passing) WriteHeader(status int) {
	p.strip()
	p.ResponseWriter.WriteHeader(status)
}

func (p *passing) Write(b []byte) (int, error) {
	p.strip()
	return p.ResponseWriter.Write(b)
}

func (p *passing) WriteString(s string) (int, error) {
	p.strip()
	return io.WriteString(p.ResponseWriter, s)
}

func (p *passing) ReadFrom(r io.Reader) (int64, error) {
	p.strip()
	return io.Copy(p.ResponseWriter, r)
}

func (p *passing) Flush() {
	p.strip()
	_ = http.NewResponseController(p.ResponseWriter).Flush()
}

func (p *passing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(p.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (p *passing) Unwrap() http.ResponseWriter { return p.ResponseWriter }
