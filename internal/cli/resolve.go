package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/driver"
)

// resolveFlags say what became of an unknown outcome.
type resolveFlags struct {
	pick
	answer    answerFlags
	unknown   bool
	olderThan time.Duration
	happened  string
	didNot    bool
	final     string
	by, why   string
	yes       bool
}

func newRecordsResolve(f *recordFlags) *cobra.Command {
	var r resolveFlags
	cmd := &cobra.Command{
		Use:   "resolve (KEY | key:DIGEST | --id HEX | --unknown --older-than D) (--did-not | --final TEXT | --happened FILE) --by WHO --why TEXT",
		Short: "Settle outcomes that are unknown",
		Long: `Settle outcomes that are unknown.

--did-not   it did not happen and no longer can: the key is free, a retry runs again
--final     the answer is no: duplicates get this text; over HTTP a 409 with code duplicate and the text as detail
--happened  it happened: duplicates get the result in FILE (- for standard input); one record only

What --happened keeps has the form of the operation's other results. For an operation of HTTP it is an answer:
a duplicate gets --http-status, --content-type and the bytes of FILE, and nothing else. For one of a program it is a
value, as its codec writes it: --codec json (FILE must be one JSON value) or raw.

In bulk the count is shown first, and nothing is changed without --yes.`,
		Example: `  onceward records resolve order-42 --operation pay --caller shop-7 --did-not --by ann --why "not on the bank's statement"` + "\n" +
			`  onceward records resolve key:0123456789ab --happened answer.json --http-status 201 --by ann --why "bank reference 77"` + "\n" +
			`  onceward records resolve --unknown --older-than 24h --final "timed out" --by ann --why "bank confirmed none" --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if !r.unknown {
				return r.pick.check(cmd, args)
			}
			if len(args) > 0 || cmd.Flags().Changed("id") {
				return usage("resolve takes one record, or --unknown with --older-than for all of an age")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, f, args) },
	}
	r.flags(cmd)
	r.answer.flags(cmd)
	p := cmd.Flags()
	p.BoolVar(&r.unknown, "unknown", false, "all unknown records; of --operation and the scope flags where they are given")
	p.DurationVar(&r.olderThan, "older-than", 0, "with --unknown: that have been unknown for at least this long")
	p.BoolVar(&r.didNot, "did-not", false, "it did not happen and no longer can")
	p.StringVar(&r.final, "final", "", "the answer is no, in words")
	p.StringVar(&r.happened, "happened", "", "file with the result; - for standard input")
	p.StringVar(&r.by, "by", "", "who says so")
	p.StringVar(&r.why, "why", "", "how they know")
	p.BoolVar(&r.yes, "yes", false, "in bulk: do it")
	return cmd
}

func (r *resolveFlags) run(cmd *cobra.Command, f *recordFlags, args []string) error {
	if err := r.check(cmd); err != nil {
		return err
	}
	s, err := f.open(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	if r.unknown {
		return r.bulk(cmd, s)
	}
	return r.one(cmd, s, args)
}

// check looks at the flags alone, before any file is read.
func (r *resolveFlags) check(cmd *cobra.Command) error {
	set := cmd.Flags().Changed
	said := 0
	for _, flag := range []string{"did-not", "final", "happened"} {
		if set(flag) {
			said++
		}
	}
	switch {
	case said != 1 || set("did-not") && !r.didNot:
		return usage("resolve needs exactly one of --did-not, --final TEXT, --happened FILE")
	case set("final") && strings.TrimSpace(r.final) == "":
		return usage("--final needs words: duplicates get them")
	case strings.TrimSpace(r.by) == "" || strings.TrimSpace(r.why) == "":
		return usage("resolve needs --by and --why: they stay with the record")
	case r.unknown && set("happened"):
		return usage("--happened is for one record: results differ")
	case r.unknown && !set("older-than"):
		return usage("--unknown needs --older-than, such as --older-than 1h: a late original may still arrive")
	case r.olderThan < 0:
		return usage("--older-than %v is negative: give an age, such as 1h", r.olderThan)
	case !r.unknown && set("older-than"):
		return usage("--older-than is for --unknown, and this names one record")
	}
	return r.answer.check(cmd)
}

// outcome is what the flags say of a record.
func (r *resolveFlags) outcome(cmd *cobra.Command, s *store, rec *driver.Record) (driver.Outcome, error) {
	switch {
	case r.didNot:
		return driver.Outcome{Status: driver.Fail, Failure: driver.Retryable}, nil
	case r.final != "":
		return driver.Outcome{Status: driver.Fail, Failure: driver.Final, Error: r.final}, nil
	}
	data, err := readFile(cmd, r.happened)
	if err != nil {
		return driver.Outcome{}, err
	}
	result, err := r.answer.result(cmd, s, rec, data)
	return driver.Outcome{Status: driver.Success, Result: result}, err
}

func (r *resolveFlags) settle(cmd *cobra.Command, s *store, rec *driver.Record, o driver.Outcome) (bool, error) {
	st := driver.Settlement{ID: rec.ID, Fence: rec.Fence, Outcome: o, Resolution: driver.ResolutionBy(r.by, r.why, rec)}
	_, _ = rand.Read(st.Owner[:]) // never fails, by its contract
	settled, err := s.Settle(cmd.Context(), st)
	return settled.Applied, err
}

func (r *resolveFlags) one(cmd *cobra.Command, s *store, args []string) error {
	snap, err := r.find(cmd, s, args)
	if err != nil {
		return err
	}
	rec := &snap.Record
	if rec.Status == driver.Processing { // perhaps it died and nobody has looked
		if settled, err := s.Settle(cmd.Context(), driver.Settlement{ID: rec.ID, Fence: rec.Fence}); err == nil {
			rec = &settled.Record
		}
	}
	if rec.Status != driver.Fail || rec.Failure != driver.Unknown {
		return fmt.Errorf("the record is %s, and only an unknown outcome is resolved", statusOf(rec))
	}
	o, err := r.outcome(cmd, s, rec)
	if err != nil {
		return err
	}
	applied, err := r.settle(cmd, s, rec, o)
	if err != nil {
		return err
	}
	if !applied {
		return errors.New("the record changed meanwhile: look again with records show")
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "resolved 1")
	return err
}

func (r *resolveFlags) bulk(cmd *cobra.Command, s *store) error {
	var list []driver.Record
	err := walk(cmd.Context(), s, driver.Unclear, func(snap *driver.Snapshot) bool {
		if r.admits(cmd, &snap.Record) && snap.Now.Sub(snap.Record.UpdatedAt) >= r.olderThan {
			list = append(list, snap.Record)
		}
		return true
	})
	if err != nil {
		return err
	}
	have := "records have"
	if len(list) == 1 {
		have = "record has"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d %s been unknown for %v or longer\n", len(list), have, r.olderThan)
	if !r.yes {
		if len(list) == 0 {
			return nil
		}
		return usage("nothing was changed: say --yes to resolve them")
	}
	done := 0
	for i := range list {
		o, err := r.outcome(cmd, s, &list[i])
		if err != nil {
			return err
		}
		applied, err := r.settle(cmd, s, &list[i], o)
		if err != nil {
			return fmt.Errorf("after %d of %d: %w", done, len(list), err)
		}
		if applied {
			done++
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "resolved %d\n", done)
	return err
}

func readFile(cmd *cobra.Command, name string) (data []byte, err error) {
	if name == "-" {
		data, err = io.ReadAll(cmd.InOrStdin())
	} else {
		data, err = os.ReadFile(name) //nolint:gosec // the person names the file
	}
	if data == nil {
		data = []byte{} // a result of no bytes, not no result
	}
	return data, err
}
