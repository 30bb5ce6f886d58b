package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onceward/onceward/internal/config"
)

// TestFileIsTaken: what the file says holds where no flag does; 0s is said, too.
func TestFileIsTaken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]serveOptions{
		"drain: 0s\nread_timeout: 5s\n": {drain: 0, readTimeout: 5 * time.Second, lease: 7 * time.Second},
		"lease: 1s\nstore: \"memory:\"\nschema: money\ntable_prefix: x_\n": {
			drain: 30 * time.Second, lease: time.Second, store: storeFlags{"memory:", "money", "x_"},
		},
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
		if got.drain != want.drain || got.lease != want.lease || got.readTimeout != want.readTimeout || got.store != want.store {
			t.Errorf("%q: drain %v, lease %v, read_timeout %v, store %v", text, got.drain, got.lease, got.readTimeout, got.store)
		}
	}
}
