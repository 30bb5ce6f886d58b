package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// awaited is a request's body that is waited for only so long: a client that stops in the middle would otherwise hold its
// part of all bodies' memory for ever. Only our own waiting counts: a service that is slow to take the body is not the
// client's fault.
type awaited struct {
	io.ReadCloser
	control  *http.ResponseController
	patience time.Duration
	waited   time.Duration
	came     int64

	mu    sync.Mutex
	until time.Time // how long a Read waits that is under way, or that waited in vain
}

// wait begins to wait, for as long as there is patience left.
func (b *awaited) wait() (until time.Time) {
	until = time.Now().Add(b.patience + time.Duration(b.came/1024)*time.Second - b.waited)
	_ = b.control.SetReadDeadline(until) // a writer that can't, a test's for example, does not wait either
	return until
}

func (b *awaited) Read(p []byte) (int, error) {
	begun := time.Now()
	b.set(b.wait())
	n, err := b.ReadCloser.Read(p)
	b.waited += time.Since(begun)
	b.came += int64(n)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		b.set(time.Time{})
	}
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // or it would cancel the handler, whose connection is still being watched
	}
	return n, err
}

func (b *awaited) set(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = until
}

// late reports whether the body did not come in time. The server cancels the request before Read has returned, so its error
// would come too late for whoever wants to know why.
func (b *awaited) late() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.until.IsZero() && !time.Now().Before(b.until)
}
