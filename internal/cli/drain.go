package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/onceward/onceward"
)

// lastWords is how long a drain waits for what has no attempt: requests that pass unguarded, bodies that are still being
// sent, and at the end the last answers on their way to clients.
const lastWords = 2 * time.Second

// drain stops accepting and lets attempts and unrecorded results end, and nothing else for long: a client that is slow to
// send must not hold a deploy. What does not end in time is left to lapse.
func drain(srv *http.Server, guard *onceward.Guard, limit time.Duration, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	quiet := make(chan error, 1)
	go func() { quiet <- srv.Shutdown(ctx) }()
	all := within(ctx, quiet, lastWords)
	lost, err := guard.Close(ctx)
	if !all {
		all = within(ctx, quiet, lastWords)
	}
	_ = srv.Close()
	switch {
	case err == nil && all:
		log.Info("onceward drained")
		return nil
	case err == nil:
		log.Info("onceward drained: requests without an attempt, such as bodies that had not come whole, were cut off")
		return nil
	}
	log.Warn("onceward stops with attempts unfinished: their records lapse and are recovered", slog.Int("unrecorded_results", lost))
	return &exitError{exitTimeout, fmt.Errorf("not drained after %v: raise --drain, or lower the timeouts", limit)}
}

// within reports whether the server became quiet before d or ctx ended.
func within(ctx context.Context, quiet <-chan error, d time.Duration) bool {
	select {
	case err := <-quiet:
		return err == nil
	case <-time.After(d):
	case <-ctx.Done():
	}
	return false
}
