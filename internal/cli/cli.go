// Package cli is the onceward command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
)

// Exit statuses beside those of onceward.Code.
const (
	exitFailure  = 1
	exitUsage    = 2
	exitNotFound = 3
	exitTimeout  = 8
)

// exitError carries the status that a command ends with.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// Main runs the command with the process's arguments and returns its exit status.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Run runs the command. Results go to out, notices and errors to errOut.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(errOut, "onceward:", err)
	return status(err)
}

func status(err error) int {
	var exit *exitError
	switch code := onceward.CodeOf(err); {
	case errors.As(err, &exit):
		return exit.status
	case code != "":
		return code.Exit()
	case errors.Is(err, driver.ErrNotFound):
		return exitNotFound
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "onceward",
		Short:         "Make work that may be run twice take effect once",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(newServe(), newRecords(), newDemo(), newVersion())
	return root
}
