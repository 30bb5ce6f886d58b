package main

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSlowClientHoldsNoDrain: who has sent half a request has nothing running here, guarded or not; an attempt that runs at
// the same time is waited for.
func TestSlowClientHoldsNoDrain(t *testing.T) {
	t.Parallel()
	up, db := newSlow(t), filepath.Join(t.TempDir(), "o.db")
	p := start(t, up.URL, db, "--drain", "5m")
	for _, key := range []string{"", "Idempotency-Key: half\r\n"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, "POST /pay HTTP/1.1\r\nHost: x\r\n"+key+"Content-Length: 1000\r\n\r\nhalf"); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan answer, 1)
	go func() { got <- post(t.Context(), p.url+"/slow", "K") }()
	<-up.entered
	begun := time.Now()
	_ = p.Process.Signal(syscall.SIGTERM)
	untilRefused(t, p.url)
	close(up.release)
	if a := <-got; a.status != 201 {
		t.Errorf("the attempt was cut off: %+v", a)
	}
	if status := p.end(t); status != 0 || time.Since(begun) > 20*time.Second {
		t.Errorf("exit status %d after %v\n%s", status, time.Since(begun), p.log)
	}
	if !strings.Contains(p.log.String(), "were cut off") {
		t.Errorf("not told of\n%s", p.log)
	}
}
