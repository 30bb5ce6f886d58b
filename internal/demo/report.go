package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// Report compares the two versions of the shop.
type Report struct {
	Users int     `json:"users"`
	Speed float64 `json:"speed"`
	Store string  `json:"store"`
	V0    Side    `json:"v0"`
	V3    Side    `json:"v3"`
}

// Side is what one version did. Effects are from the ledgers of the services, answers from the clients.
type Side struct {
	ChargedTwice int   `json:"users_charged_twice"` // or more often
	Overcharged  int64 `json:"overcharged_fen"`
	Charges      int   `json:"charges"`
	WithKey      int   `json:"charges_with_idempotency_key"`
	Orders       int   `json:"order_rows"`
	SMS          int   `json:"sms"`
	Points       int   `json:"points"`
	NotOnce      int   `json:"users_without_exactly_one_of_each"`

	Succeeded    int `json:"success_answers"`            // clients that saw one
	Receipts     int `json:"receipts"`                   // different ones, over all clients
	MostReceipts int `json:"most_receipts_of_a_client"`  // different ones
	Open         int `json:"outcomes_left_open"`         // clicks whose answer was not waited for
	ByReplay     int `json:"open_settled_by_replay"`     // the retry got the first answer
	ByRunning    int `json:"open_settled_by_running"`    // the click had not begun the work, so the retry did it
	NeverSettled int `json:"open_never_settled"`         // no way to ask
	Replayed     int `json:"answers_replayed"`           // third clicks among them
	SentAway     int `json:"answers_to_come_back_later"` // 409 and 5xx

	Took    time.Duration `json:"took_ns"`
	Failure string        `json:"failure,omitempty"` // of the first client that saw no success
}

// OK returns nil when the accident happened without Onceward and did not happen with it, otherwise every difference.
func (r *Report) OK() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if r.V0.ChargedTwice == 0 {
		bad("demo: without protection nobody was charged twice: the accident did not happen, so nothing is shown (raise --users)")
	}
	for _, c := range []struct {
		what string
		n    int
	}{
		{"charges", r.V3.Charges}, {"order rows", r.V3.Orders}, {"SMS", r.V3.SMS}, {"points", r.V3.Points},
		{"success answers", r.V3.Succeeded}, {"different receipts", r.V3.Receipts},
	} {
		if c.n != r.Users {
			bad("demo: with Onceward there are %d %s for %d users", c.n, c.what, r.Users)
		}
	}
	if r.V3.ChargedTwice > 0 || r.V3.NotOnce > 0 {
		bad("demo: with Onceward %d users were charged twice, and %d have not exactly one of each effect", r.V3.ChargedTwice, r.V3.NotOnce)
	}
	if r.V3.MostReceipts != 1 {
		bad("demo: with Onceward a client saw %d different receipts", r.V3.MostReceipts)
	}
	if r.V3.NeverSettled > 0 {
		bad("demo: with Onceward %d outcomes stayed open", r.V3.NeverSettled)
	}
	if r.V3.Failure != "" {
		problems = append(problems, errors.New(r.V3.Failure))
	}
	return errors.Join(problems...)
}

// Table prints the comparison for people.
func (r *Report) Table(w io.Writer) error {
	var out bytes.Buffer
	line := func(what string, v0, v3 any) { fmt.Fprintf(&out, "%-28s%20v%16v\n", what, v0, v3) }
	line("", "V0 (no protection)", "V3 (Onceward)")
	line("users", r.Users, r.Users)
	line("users charged twice", r.V0.ChargedTwice, r.V3.ChargedTwice)
	line("outcomes never settled", r.V0.NeverSettled, r.V3.NeverSettled)
	line("amount overcharged", yuan(r.V0.Overcharged), yuan(r.V3.Overcharged))
	line("charges at the bank", r.V0.Charges, r.V3.Charges)
	line("  sent with a key", sent(r.V0.WithKey), sent(r.V3.WithKey))
	line("order rows", r.V0.Orders, r.V3.Orders)
	line("SMS", r.V0.SMS, r.V3.SMS)
	line("points credited", r.V0.Points, r.V3.Points)
	line("clients that saw success", r.V0.Succeeded, r.V3.Succeeded)
	line("outcomes left open", r.V0.Open, r.V3.Open)
	line("  settled by a replay", r.V0.ByReplay, r.V3.ByReplay)
	line("  settled by running", r.V0.ByRunning, r.V3.ByRunning)
	line("took", r.V0.Took.Round(10*time.Millisecond), r.V3.Took.Round(10*time.Millisecond))
	fmt.Fprintf(&out, `
Charges, orders, SMS and points are counted in the services' own ledgers, over HTTP.
The bank honours an Idempotency-Key where one is sent. V0 sends none; V3 sends one derived from the client's.
An outcome is left open when a click loses patience. With V0 nobody can ask about it: the next click is a new purchase.
With V3 the next click has the same key: it waits for the attempt that runs, and gets its answer, replayed.
Store: %s. Time runs %g times as fast: the bank answers after %v, patience lasts %v.
`, r.Store, r.Speed, bankDelay, patience)
	_, err := out.WriteTo(w)
	return err
}

func sent(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func yuan(fen int64) string { return fmt.Sprintf("¥%d.%02d", fen/100, fen%100) }
