package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
)

// pick says which record a command is about: KEY as sent, with its operation and scope; key:DIGEST as list prints it; or
// --id.
type pick struct {
	id        string
	operation string
	scope     driver.Scope
}

func (p *pick) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.id, "id", "", "the record's id in place of KEY: 64 hex digits, as list -o json prints it")
	f.StringVar(&p.operation, "operation", "http", "operation of KEY")
	f.StringVar(&p.scope.Namespace, "namespace", "", "namespace of KEY")
	f.StringVar(&p.scope.Tenant, "tenant", "", "tenant of KEY")
	f.StringVar(&p.scope.Caller, "caller", "", "caller of KEY")
}

// check refuses anything but one KEY or one --id.
func (p *pick) check(cmd *cobra.Command, args []string) error {
	byID := cmd.Flags().Changed("id")
	switch {
	case byID && len(args) == 0 || !byID && len(args) == 1:
		return nil
	case len(args) > 1:
		return usage("%s takes one KEY, not %d: quote a key that has blanks (see %s --help)", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return usage("%s takes one KEY, or --id: records list prints both (see %s --help)", cmd.CommandPath(), cmd.CommandPath())
}

var digestForm = regexp.MustCompile(`^key:[0-9a-f]{12}$`)

// find returns the record.
func (p *pick) find(cmd *cobra.Command, s *store, args []string) (driver.Snapshot, error) {
	ctx := cmd.Context()
	if len(args) == 0 {
		id, err := parseID(p.id)
		if err != nil {
			return driver.Snapshot{}, err
		}
		return s.Get(ctx, id)
	}
	// A key that the grammar refuses may still stand in a store, and one that looks like a digest too.
	snap, err := s.Get(ctx, driver.Identify(p.scope, p.operation, args[0]))
	if !errors.Is(err, driver.ErrNotFound) {
		return snap, err
	}
	if digestForm.MatchString(args[0]) {
		return p.findDigest(cmd, s, args[0])
	}
	return snap, fmt.Errorf("%w for this key under operation %q: check --operation and the scope flags, or name it as records list does, by key:DIGEST", err, p.operation)
}

func parseID(text string) (id driver.ID, err error) {
	if n, err := hex.Decode(id[:], []byte(text[:min(len(text), 2*len(id))])); err != nil || n != len(id) || len(text) != 2*len(id) {
		return id, usage("--id %q: give 64 hex digits, as records list -o json prints them", text)
	}
	return id, nil
}

// findDigest looks through the store for a key by its digest; --operation and the scope flags narrow it when given.
func (p *pick) findDigest(cmd *cobra.Command, s *store, digest string) (driver.Snapshot, error) {
	var found []driver.Record
	err := walk(cmd.Context(), s, driver.All, func(snap *driver.Snapshot) bool {
		if r := &snap.Record; digestOf(r.Key) == digest && p.admits(cmd, r) {
			found = append(found, *r)
		}
		return true
	})
	switch {
	case err != nil:
		return driver.Snapshot{}, err
	case len(found) == 0:
		return driver.Snapshot{}, fmt.Errorf("%w whose key has the digest %s", driver.ErrNotFound, digest)
	case len(found) > 1:
		var b strings.Builder
		for i := range found {
			fmt.Fprintf(&b, "\n  --id %s  # operation %s, caller %s", found[i].ID, found[i].Operation, callerOf(&found[i]))
		}
		return driver.Snapshot{}, usage("%s names %d records: say which by its id, or narrow it by --operation and the scope flags%s", digest, len(found), b.String())
	}
	return s.Get(cmd.Context(), found[0].ID)
}

// admits reports whether a record is in what the given flags name.
func (p *pick) admits(cmd *cobra.Command, r *driver.Record) bool {
	for flag, part := range map[string][2]string{
		"operation": {p.operation, r.Operation},
		"namespace": {p.scope.Namespace, r.Scope.Namespace},
		"tenant":    {p.scope.Tenant, r.Scope.Tenant},
		"caller":    {p.scope.Caller, r.Scope.Caller},
	} {
		if cmd.Flags().Changed(flag) && part[0] != part[1] {
			return false
		}
	}
	return true
}

// walk shows every record of a store, without its result, until see says that it is enough.
func walk(ctx context.Context, s *store, which driver.Which, see func(*driver.Snapshot) bool) error {
	for after := ""; ; {
		page, err := s.Scan(ctx, driver.Scan{After: after, Limit: 1000, Which: which})
		if err != nil {
			return err
		}
		for i := range page.Snapshots {
			if !see(&page.Snapshots[i]) {
				return nil
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// digestOf is a key as it may be shown: it can be a secret.
func digestOf(text string) string {
	k, err := key.Parse(text)
	if err != nil {
		return "key:invalid"
	}
	return k.Digest()
}

// callerOf is a scope in one word, for tables.
func callerOf(r *driver.Record) string {
	var parts []string
	for _, part := range []string{r.Scope.Namespace, r.Scope.Tenant, r.Scope.Caller} {
		if part != "" {
			parts = append(parts, clean(part))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "/")
}

// clean keeps stored text from moving a terminal's cursor or breaking a table.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
