package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

func newRecordsExplain(f *recordFlags) *cobra.Command {
	var p pick
	cmd := &cobra.Command{
		Use:     "explain (KEY | key:DIGEST | --id HEX)",
		Short:   "Say in words what a record means, what a duplicate gets now, and what can be done",
		Example: "  onceward records explain order-42 --operation pay --caller shop-7",
		Args:    p.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("output") {
				return usage("records explain prints words; records show -o json is for programs")
			}
			s, err := f.open(cmd)
			if err != nil {
				return err
			}
			defer func() { _ = s.close() }()
			snap, err := p.find(cmd, s, args)
			if err != nil {
				return err
			}
			return explain(cmd.OutOrStdout(), &snap)
		},
	}
	p.flags(cmd)
	return cmd
}

// explain asks the function that decides claims what it would decide now, and writes it in words.
func explain(w io.Writer, snap *driver.Snapshot) error {
	r := &snap.Record
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(clean(fmt.Sprintf(format, args...)) + "\n") }
	at := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

	say("%s of %s is %s: attempt %d, claimed at %s.", digestOf(r.Key), r.Operation, statusOf(r), r.Attempt, at(r.ClaimedAt))
	if r.Error != "" {
		say("Why: %s.", strings.TrimSuffix(r.Error, "."))
	}
	if r.Resolution != "" {
		say("Resolved: %s.", strings.TrimSuffix(r.Resolution, "."))
	}
	for _, st := range viewOf(snap).Steps {
		say("Step %s: %s.", st.Name, strings.TrimSuffix(st.words(), "."))
	}

	again := driver.Claim{
		ID: r.ID, Scope: r.Scope, Operation: r.Operation, Key: r.Key, Fingerprint: r.Fingerprint, Owner: driver.Owner{1},
		Lease: r.Lease, Timeout: r.Lease, Retention: r.Retention, MaxAttempts: r.MaxAttempts,
	}
	after, verdict, takeover, _ := state.Claim(r, &again, snap.Now, 0)
	switch {
	case state.Expired(r, snap.Now):
		say("Its retention is over since %s: a request with this key now is a new one, and runs.", at(r.ExpiresAt))
	case verdict == driver.Done:
		say("A duplicate gets the first result, until %s.", at(r.ExpiresAt))
	case verdict == driver.Refused:
		say("A duplicate gets the same failure, until %s.", at(r.ExpiresAt))
	case verdict == driver.InFlight && r.LeaseUntil.IsZero():
		say("A duplicate is told that it is in flight. The attempt has no lease: it runs in a transaction.")
	case verdict == driver.InFlight && snap.Now.Before(r.LeaseUntil):
		say("A duplicate is told that it is in flight. The attempt's lease is good until %s, and it renews it.", at(r.LeaseUntil))
	case verdict == driver.InFlight:
		say("A duplicate is told that it is in flight. The attempt's lease is over; it counts as dead from %s.", at(r.LeaseUntil.Add(state.Grace(r.Lease))))
	case verdict == driver.GotClaim:
		why := "The key is free"
		if takeover {
			why = "The attempt is dead and may be run again"
		}
		say("%s: a duplicate runs the work now, as attempt %d.", why, after.Attempt)
		if len(r.Steps) > 0 {
			say("What a step is done with is remembered: it is not called again.")
		}
	case verdict == driver.OutcomeOpen:
		say("A duplicate is told that the outcome is unknown, and runs nothing.")
		if !r.Unclear() {
			say("The attempt is dead, and can't be run again: %s.", after.Error)
		}
		say("Find out at the other side what happened, no earlier than %s, when a late original can't arrive any more; then say so:", at(r.DeadlineAt.Add(state.Grace(r.Lease))))
		for _, how := range []string{"--happened FILE   it did; duplicates get the file", "--did-not         it did not, and no longer can; the key is free", "--final TEXT      the answer is no"} {
			say("  onceward records resolve --id %s %s", r.ID, how)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
