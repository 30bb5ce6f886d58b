package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onceward/onceward/janitor"
)

// janitorFlags say how a store is kept in order.
type janitorFlags struct {
	keep     bool
	window   string
	zone     string
	alarm    time.Duration
	location *time.Location
}

func (f *janitorFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.keep, "keep-expired", false, "never drop records whose retention is over; they take room and count for nothing")
	flags.StringVar(&f.window, "purge-window", "", "when expired records are dropped, such as 02:00-05:00 (default always)")
	flags.StringVar(&f.zone, "purge-window-zone", "UTC", "time zone of --purge-window, such as Asia/Shanghai")
	flags.DurationVar(&f.alarm, "alarm-age", time.Hour, "for how long an outcome may be unknown before the log and the metrics tell")
}

// check reads the time zone, and tells what is wrong with the flags.
func (f *janitorFlags) check() (err error) {
	if f.location, err = time.LoadLocation(f.zone); err != nil {
		return usage("--purge-window-zone %q: name a time zone such as Asia/Shanghai: %v", f.zone, err)
	}
	if f.alarm <= 0 {
		return usage("--alarm-age must be more than nothing, such as 1h")
	}
	o := f.options(nil)
	if err := o.Check(); err != nil {
		return usage("--purge-window %q: write it as 02:00-05:00, from and to at different times of the day", f.window)
	}
	return nil
}

func (f *janitorFlags) options(log *slog.Logger) janitor.Options {
	return janitor.Options{KeepExpired: f.keep, Window: f.window, Location: f.location, AlarmAge: f.alarm, Every: defaultEvery, Logger: log}
}

// defaultEvery is the time from one sweep to the next.
const defaultEvery = 5 * time.Second

func newJanitor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "janitor",
		Short: "Keep a store in order",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJanitorRun())
	return cmd
}

func newJanitorRun() *cobra.Command {
	var f janitorFlags
	var st storeFlags
	var once bool
	var every time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Settle dead attempts and drop expired records; serve does so by itself",
		Long: `Settle attempts that died, and drop records whose retention is over.

serve has a janitor of its own; this one is for stores that only libraries use. Of all janitors of a store one works at a
time. It has no resolvers, which are in programs and in the configuration of serve: unknown outcomes are counted.`,
		Example: "  onceward janitor run --store postgres://onceward@db.internal/onceward --purge-window 02:00-05:00\n" +
			"  onceward janitor run --once -o json",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if output != "text" && output != "json" {
				return usage("-o %q: use text or json", output)
			}
			if every < 100*time.Millisecond {
				return usage("--every must be at least 100ms")
			}
			if err := f.check(); err != nil {
				return err
			}
			s, err := st.open(cmd.Context(), false)
			if err != nil {
				return away(err)
			}
			defer func() { err = errors.Join(err, s.close()) }()
			o := f.options(slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
			o.Every = every
			out := cmd.OutOrStdout()
			if once {
				rep, err := janitor.Sweep(cmd.Context(), s, &o)
				return errors.Join(err, printSweep(out, output, &rep))
			}
			return runJanitor(cmd.Context(), out, output, s, o)
		},
	}
	flags := cmd.Flags()
	st.add(flags, "sqlite:onceward.db", "")
	f.add(flags)
	flags.BoolVar(&once, "once", false, "sweep once, whoever leads, print what was done, and end")
	flags.DurationVar(&every, "every", defaultEvery, "time from one sweep's start to the next one's")
	flags.StringVarP(&output, "output", "o", "text", "text or json, a line a sweep")
	return cmd
}

// runJanitor runs until ctx ends, and prints the sweeps that changed something or could not go on.
func runJanitor(ctx context.Context, out io.Writer, output string, s janitor.Store, o janitor.Options) error {
	o.Observer = func(rep janitor.Report, _ error) {
		if rep.Repeatable+rep.Unclear+rep.Purged > 0 {
			_ = printSweep(out, output, &rep)
		}
	}
	return janitor.Run(ctx, s, &o)
}

// sweepView is a report as programs read it.
type sweepView struct {
	Seen                 int     `json:"seen"`
	Damaged              int     `json:"damaged"`
	Processing           int     `json:"processing"`
	OldestSeconds        float64 `json:"oldest_seconds"`
	Repeatable           int     `json:"settled_repeatable"`
	Unclear              int     `json:"settled_unknown"`
	Unknown              int     `json:"unknown"`
	OldestUnknownSeconds float64 `json:"oldest_unknown_seconds"`
	Overdue              int     `json:"overdue"`
	Purged               int     `json:"purged"`
	Expired              int     `json:"expired"`
	LagSeconds           float64 `json:"lag_seconds"`
	TookSeconds          float64 `json:"took_seconds"`
}

func printSweep(w io.Writer, output string, r *janitor.Report) error {
	if output == "json" {
		return json.NewEncoder(w).Encode(sweepView{
			r.Seen, r.Damaged, r.Processing, r.Oldest.Seconds(), r.Repeatable, r.Unclear, r.Unknown, r.OldestUnknown.Seconds(), r.Overdue,
			r.Purged, r.Expired, r.Lag.Seconds(), r.Took.Seconds(),
		})
	}
	_, err := fmt.Fprintf(w, "%d rows seen in %v: %d running, %d dead may run again, %d dead are unknown, %d unknown in all (%d overdue), %d expired dropped, %d expired left (lag %v), %d damaged\n",
		r.Seen, r.Took.Round(time.Millisecond), r.Processing, r.Repeatable, r.Unclear, r.Unknown, r.Overdue, r.Purged, r.Expired, r.Lag.Round(time.Second), r.Damaged)
	return err
}
