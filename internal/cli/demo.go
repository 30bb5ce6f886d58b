package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/onceward/onceward/internal/demo"
	"github.com/onceward/onceward/store/memstore"
)

func newDemo() *cobra.Command {
	var o demo.Options
	var f storeFlags
	var output string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Live through the accident that Onceward is for, without it and with it",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if output != "table" && output != "json" {
				return usage("-o %q: use table or json", output)
			}
			o.Store = memstore.New(nil) // until the real one is open
			if err := o.Check(); err != nil {
				return &exitError{exitUsage, err}
			}
			kept := f.url != ""
			if !kept {
				dir, err := os.MkdirTemp("", "onceward-demo-")
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
				f.url, o.StoreName = "sqlite:"+filepath.Join(dir, "demo.db"), "SQLite in a temporary file"
			}
			if o.StoreName, err = f.prepare(cmd.Context(), o.StoreName); err != nil {
				return err
			}
			s, err := f.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.close()) }()
			o.Store = s
			o.Progress = terminal(cmd.ErrOrStderr())
			rep, err := demo.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(rep)
			} else {
				err = rep.Table(cmd.OutOrStdout())
			}
			if kept && f.url != "memory:" {
				fmt.Fprintf(cmd.ErrOrStderr(), "V3's records are left in the store: onceward records list --store %s\n", shellQuoted(o.StoreName))
			}
			return errors.Join(err, rep.OK())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Users, "users", 3700, "how many users")
	flags.Float64Var(&o.Speed, "speed", 100, "how much faster time runs than in the story")
	f.add(flags, "", "; empty: SQLite in a temporary file")
	flags.StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// terminal returns w when it is one, and nil otherwise: a log does not want a progress bar.
func terminal(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor is small
		return w
	}
	return nil
}
