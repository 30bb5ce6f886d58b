package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFullDisk: a gateway whose disk is full says so at once, to its callers, to who asks whether it is ready, and in its
// log; and goes on when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs root, to make a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 2000))
	}))
	t.Cleanup(up.Close)
	p := start(t, up.URL, filepath.Join(disk, "o.db"))
	if a := post(t.Context(), p.url+"/pay", "first"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	ready := func() answer { return get(t, p.admin+"/readyz") }
	if a := ready(); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	filler := filepath.Join(disk, "filler")
	_ = os.WriteFile(filler, make([]byte, 2<<20), 0o600) // as much as there is room for
	refused := ""
	for i := 0; i < 1000 && refused == ""; i++ {
		begun := time.Now()
		k := "k" + strconv.Itoa(i)
		a := post(t.Context(), p.url+"/pay", k)
		if a.status == 200 {
			continue
		}
		refused = k
		if d := time.Since(begun); a.status != 503 || !strings.Contains(a.body, "store_full") || d > 3*time.Second {
			t.Fatalf("after %v: %+v", d, a)
		}
	}
	if refused == "" {
		t.Fatal("the disk never was full")
	}
	if a := ready(); a.status != 503 {
		t.Errorf("ready: %+v", a)
	}
	if a := post(t.Context(), p.url+"/pay", "first"); a.status != 200 || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("what is known can't be read: %+v", a)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if a := post(t.Context(), p.url+"/pay", refused); a.status != 200 || a.header.Get("Idempotency-Status") != "executed" {
		t.Errorf("with room: %+v", a)
	}
	if log := p.stop(t); !strings.Contains(log, `msg="onceward: store calls fail" call=claim code=store_full count=1`) || !strings.Contains(log, "disk I/O error") {
		t.Errorf("no cause in\n%s", log)
	}
}
