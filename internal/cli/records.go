package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/driver"
)

// recordFlags name a store and the form of what is printed.
type recordFlags struct {
	store  storeFlags
	output string
}

func newRecords() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Look at records and settle what is unknown",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f recordFlags
	p := cmd.PersistentFlags()
	f.store.add(p, "sqlite:onceward.db", "")
	p.StringVarP(&f.output, "output", "o", "table", "table, json or ndjson")
	cmd.AddCommand(newRecordsList(&f), newRecordsShow(&f), newRecordsExplain(&f), newRecordsResolve(&f))
	return cmd
}

func (f *recordFlags) open(cmd *cobra.Command) (*store, error) {
	switch f.output {
	case "table", "json", "ndjson":
	default:
		return nil, usage("-o %q: use table, json or ndjson", f.output)
	}
	return f.store.open(cmd.Context(), false)
}

func newRecordsList(f *recordFlags) *cobra.Command {
	var status string
	var limit int
	var only pick
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records, in the store's order",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			which, match, err := parseStatusFilter(status)
			if err != nil {
				return err
			}
			if limit < 1 {
				return usage("--limit %d: use at least 1", limit)
			}
			s, err := f.open(cmd)
			if err != nil {
				return err
			}
			defer func() { _ = s.close() }()
			var list []recordView
			err = walk(cmd.Context(), s, which, func(snap *driver.Snapshot) bool {
				if match(&snap.Record) && only.admits(cmd, &snap.Record) {
					list = append(list, viewOf(snap))
				}
				return len(list) < limit
			})
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), list)
		},
	}
	p := cmd.Flags()
	p.StringVar(&status, "status", "", "only these: processing, success, final, retryable, unknown")
	p.IntVar(&limit, "limit", 100, "at most so many")
	p.StringVar(&only.operation, "operation", "", "only of this one")
	p.StringVar(&only.scope.Namespace, "namespace", "", "only of this one")
	p.StringVar(&only.scope.Tenant, "tenant", "", "only of this one")
	p.StringVar(&only.scope.Caller, "caller", "", "only of this one")
	return cmd
}

func parseStatusFilter(word string) (driver.Which, func(*driver.Record) bool, error) {
	fail := func(f driver.Failure) func(*driver.Record) bool {
		return func(r *driver.Record) bool { return r.Status == driver.Fail && r.Failure == f }
	}
	switch word {
	case "":
		return driver.All, func(*driver.Record) bool { return true }, nil
	case "processing":
		return driver.Open, func(*driver.Record) bool { return true }, nil
	case "unknown":
		return driver.Unclear, func(*driver.Record) bool { return true }, nil
	case "success":
		return driver.All, func(r *driver.Record) bool { return r.Status == driver.Success }, nil
	case "final":
		return driver.All, fail(driver.Final), nil
	case "retryable":
		return driver.All, fail(driver.Retryable), nil
	}
	return 0, nil, usage("--status %q: use processing, success, final, retryable or unknown", word)
}

func (f *recordFlags) print(w io.Writer, list []recordView) error {
	switch f.output {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if list == nil {
			list = []recordView{}
		}
		return enc.Encode(list)
	case "ndjson":
		enc := json.NewEncoder(w)
		for i := range list {
			if err := enc.Encode(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "KEY\tOPERATION\tCALLER\tSTATUS\tATTEMPT\tCREATED\tEXPIRES\tNOTE")
	for i := range list {
		v := &list[i]
		expires, note := "-", v.Error
		if v.Expires != nil {
			expires = v.Expires.Format(time.DateTime)
		}
		if v.Expired {
			expires += " (expired)"
		}
		if v.Resolution != "" {
			note = v.Resolution
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", v.Key, v.Operation, callerOf(v.record), statusOf(v.record), v.Attempt,
			v.Created.Format(time.DateTime), expires, clean(note))
	}
	return tw.Flush()
}

// statusOf is a record's status and failure in words.
func statusOf(r *driver.Record) string {
	if r.Failure == 0 {
		return r.Status.String()
	}
	return r.Status.String() + " " + r.Failure.String()
}
