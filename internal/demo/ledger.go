package demo

import (
	"context"
	"net/http"
	"strconv"
	"sync"
)

// entry is one effect: a charge, an order row, an SMS, points.
type entry struct {
	ID     string `json:"id"`
	User   int    `json:"user"`
	Amount int64  `json:"amount_fen"`
	Key    string `json:"key,omitempty"` // as the caller sent it; empty: the caller sent none
}

// ledger is the truth about one kind of effect. GET lists it.
type ledger struct {
	name string

	mu    sync.Mutex
	rows  []entry
	byKey map[string]int // index in rows
}

func newLedger(name string) *ledger { return &ledger{name: name, byKey: map[string]int{}} }

// enter writes an entry and returns it with its id. A key that was there before gets its first entry; without a key
// nobody can tell a repetition from a second purchase, so every entry is a new one.
func (l *ledger) enter(e entry) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.byKey[e.Key]; ok {
		return l.rows[at]
	}
	if e.Key != "" {
		l.byKey[e.Key] = len(l.rows)
	}
	e.ID = l.name + "-" + strconv.Itoa(len(l.rows)+1)
	l.rows = append(l.rows, e)
	return e
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	rows := l.rows[:len(l.rows):len(l.rows)] // entries are never changed
	l.mu.Unlock()
	answer(w, http.StatusOK, rows)
}

// readLedger reads a ledger over HTTP.
func readLedger(ctx context.Context, client *http.Client, url string) (rows []entry, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	_, err = exchange(client, r, &rows)
	return rows, err
}
