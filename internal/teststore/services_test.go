package teststore

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServices: what does not answer on its usual port is started, found again, and ended.
func TestServices(t *testing.T) {
	t.Parallel()
	for _, v := range services() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			var notes strings.Builder
			s := Services{Root: t.TempDir(), Notes: &notes}
			t.Cleanup(func() { removeAll(t, filepath.Dir(s.dir(&v))) })
			v.variable, v.usual = v.variable+"_UNSET", strings.NewReplacer(":5432", ":1", ":3306", ":1").Replace(v.usual)
			dsn, err := s.find(&v)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := s.find(&v); again != dsn || err != nil {
				t.Errorf("found %s, then %s, %v", dsn, again, err)
			}
			if n := strings.Count(notes.String(), "starting"); n != 1 {
				t.Errorf("started %d times: %s", n, notes.String())
			}
			own, _ := s.started(&v)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the server ends", func() bool {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", own.addr())
				if err == nil {
					_ = c.Close()
				}
				return err != nil
			})
			if err := s.Stop(); err != nil {
				t.Errorf("nothing to stop: %v", err)
			}
		})
	}
}

// TestServicesElsewhere: a server that somebody names is taken, or named as what does not work; never replaced.
func TestServicesElsewhere(t *testing.T) {
	for _, v := range services() {
		s := Services{Root: t.TempDir()}
		t.Setenv(v.variable, strings.NewReplacer(":5432", ":1", ":3306", ":1").Replace(v.usual))
		if _, err := s.find(&v); err == nil || !strings.Contains(err.Error(), v.variable) {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal(fmt.Sprint("never: ", what))
		}
	}
}
