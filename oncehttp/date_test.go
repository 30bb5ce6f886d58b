package oncehttp

import (
	"net/http"
	"testing"
	"time"
)

func TestDateIsAnHTTPDate(t *testing.T) {
	t.Parallel()
	far := time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Date(1999, 12, 31, 23, 59, 59, 999, time.FixedZone("", 3600)); at.Before(far); at = at.Add(25*time.Hour + 61*time.Second) {
		if got, want := date(at), at.UTC().Format(http.TimeFormat); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
