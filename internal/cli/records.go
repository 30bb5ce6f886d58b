package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
)

// recordFlags name a store and a record in it.
type recordFlags struct {
	store     string
	output    string
	operation string
	scope     driver.Scope
}

func newRecords() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Look at records and settle what is unknown",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f recordFlags
	p := cmd.PersistentFlags()
	p.StringVar(&f.store, "store", "sqlite:onceward.db", storeHelp)
	p.StringVarP(&f.output, "output", "o", "table", "table, json or ndjson")
	p.StringVar(&f.operation, "operation", "http", "operation of KEY; for list: only this one, empty for all")
	p.StringVar(&f.scope.Namespace, "namespace", "", "namespace of KEY")
	p.StringVar(&f.scope.Tenant, "tenant", "", "tenant of KEY")
	p.StringVar(&f.scope.Caller, "caller", "", "caller of KEY")
	cmd.AddCommand(newRecordsList(&f), newRecordsShow(&f), newRecordsResolve(&f))
	return cmd
}

func (f *recordFlags) open(cmd *cobra.Command) (*store, error) {
	switch f.output {
	case "table", "json", "ndjson":
	default:
		return nil, usage("-o %q: use table, json or ndjson", f.output)
	}
	return openStore(cmd.Context(), f.store, false)
}

// id finds the record of KEY. A key that the grammar refuses may still stand in a store.
func (f *recordFlags) id(keyText string) driver.ID {
	return driver.Identify(f.scope, f.operation, keyText)
}

func newRecordsList(f *recordFlags) *cobra.Command {
	var status string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records, in the store's order",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			which, match, err := parseStatusFilter(status)
			if err != nil {
				return err
			}
			s, err := f.open(cmd)
			if err != nil {
				return err
			}
			defer func() { _ = s.close() }()
			all := !cmd.Flags().Changed("operation")
			var list []recordView
			for after := ""; len(list) < limit; {
				page, err := s.Scan(cmd.Context(), driver.Scan{After: after, Limit: 1000, Which: which})
				if err != nil {
					return err
				}
				for i := range page.Snapshots {
					r := &page.Snapshots[i].Record
					if match(r) && (all || f.operation == "" || r.Operation == f.operation) && len(list) < limit {
						list = append(list, viewOf(r))
					}
				}
				if after = page.Next; after == "" {
					break
				}
			}
			return f.print(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "only these: processing, success, final, retryable, unknown")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many")
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

func newRecordsShow(f *recordFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show one record, by its key as sent, its operation and its scope",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open(cmd)
			if err != nil {
				return err
			}
			defer func() { _ = s.close() }()
			snap, err := s.Get(cmd.Context(), f.id(args[0]))
			if err != nil {
				return fmt.Errorf("%w: check --operation and the scope flags too", err)
			}
			return f.print(cmd.OutOrStdout(), []recordView{viewOf(&snap.Record)})
		},
	}
}

// recordView is a record as people and programs see it. The key is its digest: it can be a secret.
type recordView struct {
	ID          string     `json:"id"`
	Key         string     `json:"key"`
	Operation   string     `json:"operation"`
	Namespace   string     `json:"namespace,omitempty"`
	Tenant      string     `json:"tenant,omitempty"`
	Caller      string     `json:"caller,omitempty"`
	Status      string     `json:"status"`
	Failure     string     `json:"failure,omitempty"`
	Attempt     int        `json:"attempt"`
	Died        int        `json:"died"`
	MaxAttempts int        `json:"max_attempts"`
	Fence       int64      `json:"fence"`
	OnLapse     string     `json:"on_lapse"`
	LeaseUntil  *time.Time `json:"lease_until,omitempty"`
	Created     time.Time  `json:"created_at"`
	Updated     time.Time  `json:"updated_at"`
	Completed   *time.Time `json:"completed_at,omitempty"`
	Expires     *time.Time `json:"expires_at,omitempty"`
	Codec       string     `json:"result_codec,omitempty"`
	Bytes       int        `json:"result_bytes,omitempty"`
	Tombstone   bool       `json:"tombstone,omitempty"`
	Error       string     `json:"error,omitempty"`
	Resolution  string     `json:"resolution,omitempty"`
}

func viewOf(r *driver.Record) recordView {
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	digest := "key:invalid"
	if k, err := key.Parse(r.Key); err == nil {
		digest = k.String()
	}
	return recordView{
		ID: r.ID.String(), Key: digest, Operation: r.Operation,
		Namespace: r.Scope.Namespace, Tenant: r.Scope.Tenant, Caller: r.Scope.Caller,
		Status: r.Status.String(), Failure: r.Failure.String(), Attempt: r.Attempt, Died: r.Died, MaxAttempts: r.MaxAttempts,
		Fence: r.Fence, OnLapse: r.OnLapse.String(), LeaseUntil: at(r.LeaseUntil),
		Created: r.CreatedAt, Updated: r.UpdatedAt, Completed: at(r.CompletedAt), Expires: at(r.ExpiresAt),
		Codec: r.Result.Codec, Bytes: len(r.Result.Data), Tombstone: r.Result.Tombstone, Error: r.Error, Resolution: r.Resolution,
	}
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
		if v.Resolution != "" {
			note = v.Resolution
		}
		status := v.Status
		if v.Failure != "" {
			status += " " + v.Failure
		}
		caller := v.Namespace + v.Tenant + v.Caller
		if caller == "" {
			caller = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", v.Key, v.Operation, caller, status, v.Attempt, v.Created.Format(time.DateTime), expires, note)
	}
	return tw.Flush()
}
