package janitor

import (
	"fmt"
	"strings"
	"time"
)

// window is a part of every day.
type window struct {
	from, to time.Duration // since midnight; both zero: the whole day
	in       *time.Location
}

// parseWindow reads "02:00-05:00". Empty is the whole day.
func parseWindow(text string, in *time.Location) (w window, err error) {
	if in == nil {
		in = time.UTC
	}
	w.in = in
	if text == "" {
		return w, nil
	}
	from, to, ok := strings.Cut(text, "-")
	var err2 error
	w.from, err = parseClock(from)
	w.to, err2 = parseClock(to)
	if !ok || err != nil || err2 != nil || w.from == w.to {
		return w, fmt.Errorf("janitor: window %q: write it as 02:00-05:00, from and to at different times of the day", text)
	}
	return w, nil
}

func parseClock(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", strings.TrimSpace(text))
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err
}

// open reports whether now is inside: from included, to not.
func (w window) open(now time.Time) bool {
	if w.from == w.to {
		return true
	}
	h, m, s := now.In(w.in).Clock()
	at := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
	if w.from < w.to {
		return w.from <= at && at < w.to
	}
	return at >= w.from || at < w.to
}
