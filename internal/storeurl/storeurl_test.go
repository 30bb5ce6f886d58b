package storeurl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onceward/onceward/dialect"
	"github.com/onceward/onceward/internal/storeurl"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		shown string
		on    dialect.Dialect
	}{
		"memory:":             {"memory:", 0},
		"sqlite:o.db":         {"sqlite:o.db", dialect.SQLite},
		"sqlite:///tmp/o.db":  {"sqlite:/tmp/o.db", dialect.SQLite},
		"sqlite:a b.db":       {"sqlite:a b.db", dialect.SQLite},
		"postgres://h/d":      {"postgres://h/d", dialect.PostgreSQL},
		"postgresql://u@h/d":  {"postgresql://u@h/d", dialect.PostgreSQL},
		"mysql://u@h/d":       {"mysql://u@h/d", dialect.MySQL},
		"mariadb://u@[::1]/d": {"mariadb://u@[::1]/d", dialect.MySQL},
		"postgres://u:s3cret@h:5/d?sslmode=disable&password=s3cret": {"postgres://u:xxxxx@h:5/d?password=xxxxx&sslmode=disable", dialect.PostgreSQL},
		"mysql://u:s3cret%40@h:3307/d?tls=true":                     {"mysql://u:xxxxx@h:3307/d?tls=true", dialect.MySQL},
	} {
		u, err := storeurl.Parse(text)
		if err != nil || u.String() != want.shown || u.On != want.on {
			t.Errorf("%s: %v %v", text, u, err)
		}
	}
}

// TestParseRefuses, with what to write instead, and never with a password.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"onceward.db": "has no scheme", "": "has no scheme", "redis://h": "not known", "memory:x": "nothing behind",
		"sqlite:": "needs a file", "sqlite::memory:": "memory:", "sqlite:o.db?mode=ro": "no options",
		"postgres:///d": "no host", "postgres://u:s3cret@h/d#x": "%23", "postgres://u:s3cret@h/d/e": "more than one",
		"postgres://u:1#s3cret@h/d": "%23", "postgres://u:12/s3cret@h/d": "%2F", "postgres:u:s3cret@h/d": "%2F",
		"postgres://u:12?s3cret@h/d": "%3F", "mysql://u:12?s3cret@h/d": "%3F", "postgres:///d?host=/tmp&password=s3cret": "no host",
		"mysql://u:s3cret@h": "which database", "mysql://u:s3cret@h/d?timeout=x": "parameter",
		"postgres://u:s3 cret@h/d": "%XX", "postgres://u:s3cret@h:port/d": "%XX",
	} {
		_, err := storeurl.Parse(text)
		if !errors.Is(err, storeurl.ErrUsage) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestHandleOfNonsense: what the driver's parser refuses is refused without a password.
func TestHandleOfNonsense(t *testing.T) {
	t.Parallel()
	u, err := storeurl.Parse("postgres://u:s3cret@h/d?sslmode=nonsense")
	if err != nil {
		t.Fatal(err)
	}
	db, err := u.Handle(2)
	if err == nil {
		defer db.Close()
		err = db.PingContext(t.Context())
	}
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}
