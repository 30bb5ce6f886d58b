// Package cli is the onceward command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
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
	exitFindings = 7
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

// Main runs the command with the process's arguments and returns its exit status. The first signal asks it to end, the
// second ends it.
func Main() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	for asked := false; ; asked = true {
		select {
		case status := <-ended:
			return status
		case <-signals:
			if asked {
				fmt.Fprintln(os.Stderr, "onceward: stopped by a second signal: what ran is left as if the process had died")
				return exitTimeout
			}
			cancel()
		}
	}
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
	fmt.Fprintln(errOut, "onceward:", plain(err))
	return status(err)
}

// plain is an error for people: the program's name stands in front of it already.
func plain(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimPrefix(line, "onceward: "), ": onceward: ", ": ")
	}
	return strings.Join(lines, "\n")
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
		Version:       versionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(newServe(), newRecords(), newJanitor(), newMigrate(), newDoctor(), newDemo(), newVersion())
	return root
}

// noArgs refuses arguments. Of a command that has others under it, one is a name that does not exist.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return usage("%s takes no arguments, and %q is one (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("%s has no command %q%s (see %s --help)", cmd.CommandPath(), args[0], hint, cmd.CommandPath())
}
