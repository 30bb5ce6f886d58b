package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/migrate"
)

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make or update the tables of a store",
		Long: "Make or update the tables of a store. Nothing else changes the tables of a server: serve and the library refuse\n" +
			"those that do not fit. A SQLite file that is empty gets its tables by itself.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f storeFlags
	f.add(cmd.PersistentFlags(), "sqlite:onceward.db", "")
	up := &cobra.Command{
		Use:     "up",
		Short:   "Apply the migrations that are missing",
		Example: "  onceward migrate up --store postgres://onceward:…@db.internal/onceward",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			u, t, closeDB, err := f.target(true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeDB()) }()
			steps, err := migrate.Up(cmd.Context(), t)
			if err != nil {
				return err
			}
			for _, s := range steps {
				fmt.Fprintf(cmd.OutOrStdout(), "applied %s\n", s.Name)
			}
			if len(steps) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to do")
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "the tables of %s are ready\n", u)
			return nil
		},
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "List the migrations; exits with 7 when some are missing",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			_, t, closeDB, err := f.target(false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeDB()) }()
			ctx, cancel := context.WithTimeout(cmd.Context(), connectTimeout)
			defer cancel()
			steps, err := migrate.Status(ctx, t)
			if err != nil {
				return err
			}
			missing := 0
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "VERSION\tMIGRATION\tSTATE")
			for _, s := range steps {
				state := "applied"
				if !s.Applied {
					state = "missing"
					missing++
				}
				fmt.Fprintf(w, "%d\t%s\t%s\n", s.Version, s.Name, state)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if missing > 0 {
				return &exitError{exitFindings, fmt.Errorf("%s missing: run onceward migrate up", count(missing, "migration is", "migrations are"))}
			}
			return nil
		},
	}
	show := &cobra.Command{
		Use:     "print",
		Short:   "Print the SQL of all migrations, without touching a database",
		Example: "  onceward migrate print --store mysql://db.internal/onceward > onceward.sql",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			u, err := f.parse()
			if err != nil {
				return err
			}
			if u.On == 0 {
				return usage("store %s has no tables", u)
			}
			text, err := migrate.Print(u.On, f.schema, f.prefix)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.AddCommand(up, status, show)
	return cmd
}

func count(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprint(n, " ", one)
	}
	return fmt.Sprint(n, " ", many)
}
