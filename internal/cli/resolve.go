package cli

import (
	"crypto/rand"
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
	unknown   bool
	olderThan time.Duration
	happened  string
	codec     string
	didNot    bool
	final     string
	by, why   string
	yes       bool
}

func newRecordsResolve(f *recordFlags) *cobra.Command {
	var r resolveFlags
	cmd := &cobra.Command{
		Use:   "resolve (KEY | --unknown --older-than D) (--did-not | --final TEXT | --happened FILE) --by WHO --why TEXT",
		Short: "Settle outcomes that are unknown",
		Long: `Settle outcomes that are unknown.

--did-not   it did not happen and no longer can: the key is free, a retry runs again
--final     the answer is no: duplicates get this text
--happened  it happened: duplicates get the result in FILE (- for standard input); one KEY only

In bulk the count is shown first, and nothing is changed without --yes.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, f, args) },
	}
	p := cmd.Flags()
	p.BoolVar(&r.unknown, "unknown", false, "all unknown records, of --operation when that is given")
	p.DurationVar(&r.olderThan, "older-than", 0, "with --unknown: that have been unknown for at least this long")
	p.BoolVar(&r.didNot, "did-not", false, "it did not happen and no longer can")
	p.StringVar(&r.final, "final", "", "the answer is no, in words")
	p.StringVar(&r.happened, "happened", "", "file with the result")
	p.StringVar(&r.codec, "codec", "json", "codec of the result in --happened")
	p.StringVar(&r.by, "by", "", "who says so")
	p.StringVar(&r.why, "why", "", "how they know")
	p.BoolVar(&r.yes, "yes", false, "in bulk: do it")
	return cmd
}

func (r *resolveFlags) run(cmd *cobra.Command, f *recordFlags, args []string) error {
	outcome, err := r.outcome(cmd)
	if err != nil {
		return err
	}
	if strings.TrimSpace(r.by) == "" || strings.TrimSpace(r.why) == "" {
		return usage("resolve needs --by and --why: they stay with the record")
	}
	if (len(args) == 1) == r.unknown {
		return usage("resolve takes one KEY, or --unknown with --older-than")
	}
	if r.unknown && !cmd.Flags().Changed("older-than") {
		return usage("--unknown needs --older-than, such as --older-than 1h: a late original may still arrive")
	}
	s, err := f.open(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	if len(args) == 1 {
		return r.one(cmd, f, s, args[0], outcome)
	}
	if r.happened != "" {
		return usage("--happened is for one KEY: results differ")
	}
	return r.bulk(cmd, f, s, outcome)
}

func (r *resolveFlags) outcome(cmd *cobra.Command) (o driver.Outcome, err error) {
	n := 0
	if r.didNot {
		n++
		o = driver.Outcome{Status: driver.Fail, Failure: driver.Retryable}
	}
	if r.final != "" {
		n++
		o = driver.Outcome{Status: driver.Fail, Failure: driver.Final, Error: r.final}
	}
	if r.happened != "" {
		n++
		var data []byte
		if data, err = readFile(cmd, r.happened); err != nil {
			return o, err
		}
		o = driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: r.codec, Data: data}}
	}
	if n != 1 {
		return o, usage("resolve needs one of --did-not, --final TEXT, --happened FILE")
	}
	return o, nil
}

func readFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return readAll(cmd.InOrStdin())
	}
	data, err := os.ReadFile(name) //nolint:gosec // the person names the file
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}

func (r *resolveFlags) settle(cmd *cobra.Command, s *store, rec *driver.Record, o driver.Outcome) (bool, error) {
	st := driver.Settlement{ID: rec.ID, Fence: rec.Fence, Outcome: o, Resolution: "by " + r.by + ": " + r.why}
	_, _ = rand.Read(st.Owner[:]) // never fails, by its contract
	settled, err := s.Settle(cmd.Context(), st)
	return settled.Applied, err
}

func (r *resolveFlags) one(cmd *cobra.Command, f *recordFlags, s *store, keyText string, o driver.Outcome) error {
	snap, err := s.Get(cmd.Context(), f.id(keyText))
	if err != nil {
		return fmt.Errorf("%w: check --operation and the scope flags too", err)
	}
	rec := &snap.Record
	if rec.Status == driver.Processing { // perhaps it died and nobody has looked
		if settled, err := s.Settle(cmd.Context(), driver.Settlement{ID: rec.ID, Fence: rec.Fence}); err == nil {
			rec = &settled.Record
		}
	}
	if rec.Status != driver.Fail || rec.Failure != driver.Unknown {
		return fmt.Errorf("the record is %s %s, and only an unknown outcome is resolved", rec.Status, rec.Failure)
	}
	applied, err := r.settle(cmd, s, rec, o)
	if err != nil {
		return err
	}
	if !applied {
		return fmt.Errorf("the record changed meanwhile: look again with records show")
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "resolved 1")
	return err
}

func (r *resolveFlags) bulk(cmd *cobra.Command, f *recordFlags, s *store, o driver.Outcome) error {
	var list []driver.Record
	for after := ""; ; {
		page, err := s.Scan(cmd.Context(), driver.Scan{After: after, Limit: 1000, Which: driver.Unclear})
		if err != nil {
			return err
		}
		for i := range page.Snapshots {
			snap := &page.Snapshots[i]
			if cmd.Flags().Changed("operation") && snap.Record.Operation != f.operation {
				continue
			}
			if snap.Now.Sub(snap.Record.UpdatedAt) >= r.olderThan {
				list = append(list, snap.Record)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d records have been unknown for %v or longer\n", len(list), r.olderThan)
	if !r.yes {
		if len(list) == 0 {
			return nil
		}
		return usage("nothing was changed: say --yes to resolve them")
	}
	done := 0
	for i := range list {
		applied, err := r.settle(cmd, s, &list[i], o)
		if err != nil {
			return fmt.Errorf("after %d of %d: %w", done, len(list), err)
		}
		if applied {
			done++
		}
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "resolved %d\n", done)
	return err
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(r)
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}
