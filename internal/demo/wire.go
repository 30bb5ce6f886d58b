package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// server is an HTTP server on a free loopback port.
type server struct {
	url  string
	srv  *http.Server
	done chan struct{}
}

// serve starts a server whose requests end with ctx.
func serve(ctx context.Context, h http.Handler) (*server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	s := &server{url: "http://" + l.Addr().String(), done: make(chan struct{})}
	s.srv = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		defer close(s.done)
		_ = s.srv.Serve(l) // returns at stop
	}()
	return s, nil
}

// stop waits for the requests that are being served, or cuts them off when ctx ends.
func (s *server) stop(ctx context.Context) error {
	err := s.srv.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("demo: %s did not end: %w", s.url, err)
		_ = s.srv.Close()
	}
	<-s.done
	return err
}

// newClient returns a client that keeps its connections, and how to let go of them.
func newClient() (client *http.Client, closeIdle func()) {
	t := &http.Transport{MaxIdleConns: 8 * atOnce, MaxIdleConnsPerHost: 2 * atOnce}
	return &http.Client{Transport: t}, t.CloseIdleConnections
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a caller who is gone reads nothing
}

// statusError is an answer that is not a success.
type statusError struct {
	status     int
	retryAfter int // seconds; 0: the answer does not say
	text       string
}

func (e *statusError) Error() string { return fmt.Sprintf("demo: status %d: %s", e.status, e.text) }

// post makes the request that sends v as JSON, with a key unless it is empty.
func post(ctx context.Context, url, key string, v any) (*http.Request, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r, nil
}

// exchange sends r, decodes a success into out, and returns the answer's headers. Errors: *statusError for an answer
// that is no success, or that there was no answer.
func exchange(client *http.Client, r *http.Request, out any) (http.Header, error) {
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		e := &statusError{status: resp.StatusCode, text: strings.TrimSpace(string(text))}
		e.retryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
		return resp.Header, e
	}
	return resp.Header, json.Unmarshal(text, out)
}
