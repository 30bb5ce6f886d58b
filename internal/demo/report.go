package demo

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
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
	Charges        int           `json:"charges"`
	ChargedTwice   int           `json:"users_charged_twice"` // or more often
	Overcharged    int64         `json:"amount_overcharged"`  // minor units
	Orders         int           `json:"order_rows"`
	SMS            int           `json:"sms"`
	Points         int           `json:"points"`
	Succeeded      int           `json:"success_answers"` // clients that saw one
	Receipts       int           `json:"receipts"`        // different ones
	Mixed          int           `json:"clients_with_several_receipts"`
	Lost           int           `json:"answers_not_waited_for"`
	Replayed       int           `json:"answers_replayed"`
	Took           time.Duration `json:"took_ns"`
	failed         []error
	chargedNothing int
}

// OK returns nil when the accident happened without Onceward and did not happen with it.
func (r *Report) OK() error {
	var problems []error
	if r.V0.ChargedTwice == 0 {
		problems = append(problems, errors.New("without protection nobody was charged twice: the accident did not happen, so nothing is shown (raise --users)"))
	}
	for _, c := range []struct {
		what string
		n    int
	}{
		{"charges", r.V3.Charges}, {"order rows", r.V3.Orders}, {"SMS", r.V3.SMS}, {"points", r.V3.Points},
		{"success answers", r.V3.Succeeded}, {"receipts", r.V3.Receipts},
	} {
		if c.n != r.Users {
			problems = append(problems, fmt.Errorf("with Onceward there are %d %s for %d users", c.n, c.what, r.Users))
		}
	}
	if r.V3.ChargedTwice > 0 || r.V3.Mixed > 0 || r.V3.chargedNothing > 0 {
		problems = append(problems, fmt.Errorf("with Onceward %d users were charged twice, %d were charged nothing, %d saw several receipts",
			r.V3.ChargedTwice, r.V3.chargedNothing, r.V3.Mixed))
	}
	if len(r.V3.failed) > 0 {
		problems = append(problems, r.V3.failed[0])
	}
	return errors.Join(problems...)
}

// Table prints the comparison for people.
func (r *Report) Table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 3, ' ', tabwriter.AlignRight)
	line := func(what string, v0, v3 any) { fmt.Fprintf(tw, "%s\t%v\t%v\t\n", what, v0, v3) }
	line("", "V0 (no protection)", "V3 (Onceward)")
	line("users", r.Users, r.Users)
	line("users charged twice", r.V0.ChargedTwice, r.V3.ChargedTwice)
	line("amount overcharged", yuan(r.V0.Overcharged), yuan(r.V3.Overcharged))
	line("charges at the bank", r.V0.Charges, r.V3.Charges)
	line("order rows", r.V0.Orders, r.V3.Orders)
	line("SMS", r.V0.SMS, r.V3.SMS)
	line("points credited", r.V0.Points, r.V3.Points)
	line("clients that saw success", r.V0.Succeeded, r.V3.Succeeded)
	line("different receipts", r.V0.Receipts, r.V3.Receipts)
	line("answers not waited for", r.V0.Lost, r.V3.Lost)
	line("replays of the first answer", r.V0.Replayed, r.V3.Replayed)
	line("took", r.V0.Took.Round(10*time.Millisecond), r.V3.Took.Round(10*time.Millisecond))
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
Charges, orders, SMS and points are counted in the services' own ledgers, over HTTP.
With V3 a client that lost patience left %d answers open. Each was settled by asking again with the same key: 409 while
the first attempt ran, then its answer, replayed. The bank was not asked again.
Store: %s. Time runs %g times as fast: the bank answers after 11 s, patience lasts 8 s.
`, r.V3.Lost, r.Store, r.Speed)
	return err
}

func yuan(minor int64) string { return fmt.Sprintf("¥%d.%02d", minor/100, minor%100) }
