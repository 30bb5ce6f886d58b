package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onceward/onceward/internal/config"
)

// TestFileSaysNoDrain: 0s in the file is what 0s of the flag is, and not nothing said.
func TestFileSaysNoDrain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]serveOptions{
		"drain: 0s\nread_timeout: 5s\n": {drain: 0, readTimeout: 5 * time.Second, lease: 7 * time.Second},
		"lease: 1s\n":                   {drain: 30 * time.Second, lease: time.Second},
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		got := serveOptions{drain: 30 * time.Second, lease: 7 * time.Second}
		got.take(c, func(string) bool { return false })
		if got.drain != want.drain || got.lease != want.lease || got.readTimeout != want.readTimeout {
			t.Errorf("%q: drain %v, lease %v, read_timeout %v", text, got.drain, got.lease, got.readTimeout)
		}
	}
}
