package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// entry is one effect that a service had.
type entry struct {
	ID     string `json:"id"`
	User   int    `json:"user"`
	Amount int64  `json:"amount,omitempty"` // minor units
	Key    string `json:"key,omitempty"`    // as the caller sent it; these services do not look at it
}

// service is an HTTP service with a ledger: POST has the effect and answers after its delay, GET /ledger lists all. It
// does what it is told as often as it is told: that is the point.
type service struct {
	name  string
	delay time.Duration
	url   string
	srv   *http.Server
	done  chan struct{}

	mu   sync.Mutex
	rows []entry
}

func startService(ctx context.Context, name string, delay time.Duration) (*service, error) {
	s := &service{name: name, delay: delay}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", s.post)
	mux.HandleFunc("GET /ledger", s.list)
	var err error
	s.srv, s.url, s.done, err = listen(ctx, mux)
	return s, err
}

func (s *service) post(w http.ResponseWriter, r *http.Request) {
	var e entry
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.Key = r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	e.ID = s.name + "-" + strconv.Itoa(len(s.rows)+1)
	s.rows = append(s.rows, e)
	s.mu.Unlock()
	timer := time.NewTimer(s.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return // the caller is gone; the effect stays
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e)
}

func (s *service) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.rows)
}

// stop waits for what the service is doing.
func (s *service) stop(ctx context.Context) error { return stop(ctx, s.srv, s.done) }

// listen serves h on a free loopback port.
func listen(ctx context.Context, h http.Handler) (srv *http.Server, url string, done chan struct{}, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, fmt.Errorf("demo: %w", err)
	}
	srv = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done = make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // returns at stop
	}()
	return srv, "http://" + l.Addr().String(), done, nil
}

func stop(ctx context.Context, srv *http.Server, done chan struct{}) error {
	err := srv.Shutdown(ctx)
	if err != nil {
		_ = srv.Close()
	}
	<-done
	return err
}

// ledger reads a service's ledger over HTTP.
func ledger(ctx context.Context, client *http.Client, url string) (rows []entry, err error) {
	err = call(ctx, client, http.MethodGet, url+"/ledger", "", nil, &rows)
	return rows, err
}
