package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/doctor"
)

func newDoctor() *cobra.Command {
	var f storeFlags
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the database behind a store; exits with 7 when something is risky or wrong",
		Long: "Examine the database behind a store: version and tables, durability, isolation, roles and limits. It changes\n" +
			"nothing, and says of each finding what it can cost and what cures it. It exits with 7 when something is risky or wrong.",
		Example: "  onceward doctor --store postgres://onceward:…@db.internal/onceward",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			u, t, closeDB, err := f.target(false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeDB()) }()
			ctx, cancel := context.WithTimeout(cmd.Context(), connectTimeout)
			defer cancel()
			rep := doctor.Examine(ctx, u.String(), t)
			if err := printReport(cmd.OutOrStdout(), output, &rep); err != nil {
				return err
			}
			if !rep.Healthy() {
				return &exitError{exitFindings, errors.New("there are findings that can cost something")}
			}
			return nil
		},
	}
	f.add(cmd.Flags(), "sqlite:onceward.db", "")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	return cmd
}

func printReport(out io.Writer, form string, rep *doctor.Report) error {
	switch form {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(rep)
	case "yaml":
		text, err := yaml.Marshal(rep)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	case "table":
	default:
		return usage("-o %q: use table, json or yaml", form)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LEVEL\tWHAT\tFOUND")
	for _, f := range rep.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.What, f.Found)
		if f.Cost != "" {
			fmt.Fprintf(w, "\t\t  it can cost: %s\n", f.Cost)
		}
		if f.Cure != "" {
			fmt.Fprintf(w, "\t\t  do: %s\n", f.Cure)
		}
	}
	return w.Flush()
}
