package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/onceward/onceward/internal/demo"
	"github.com/onceward/onceward/store/memstore"
)

func newDemo() *cobra.Command {
	var o demo.Options
	var storeURL, output string
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
			if storeURL == "" {
				dir, err := os.MkdirTemp("", "onceward-demo-")
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
				storeURL, o.StoreName = "sqlite:"+filepath.Join(dir, "demo.db"), "SQLite in a temporary file"
			} else {
				o.StoreName = storeURL
			}
			s, err := openStore(cmd.Context(), storeURL, true)
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
			if path, ok := strings.CutPrefix(storeURL, "sqlite:"); ok && o.StoreName == storeURL {
				fmt.Fprintf(cmd.ErrOrStderr(), "V3's records are left in %s: onceward records list --store %s\n", path, storeURL)
			}
			return errors.Join(err, rep.OK())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Users, "users", 3700, "how many users")
	f.Float64Var(&o.Speed, "speed", 100, "how much faster time runs than in the story")
	f.StringVar(&storeURL, "store", "", storeHelp+"; empty: SQLite in a temporary file")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// terminal returns w when it is one, and nil otherwise: a log does not want a progress bar.
func terminal(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor is small
		return w
	}
	return nil
}
