package driver

import (
	"context"
	"fmt"
)

// Purger is the optional power to drop records whose retention is over.
type Purger interface {
	// Purge first raises the store's fence floor, so that no later claim of a key that it drops gets a lower fence, and then
	// drops the records that have expired by the store's own clock: a key that was claimed again since it was seen is left
	// alone. It returns how many it dropped. It is one short piece of work, of which an error may leave a part.
	Purge(ctx context.Context, p Purge) (int, error)
}

// Purge names records that were seen to have expired.
type Purge struct {
	IDs   []ID  // at most MaxPurge
	Floor int64 // the highest of their fences; a record above it stays
}

// MaxPurge is how many records one Purge takes.
const MaxPurge = 1000

// Check returns an error about a purge that a store must not take.
func (p *Purge) Check() error {
	if len(p.IDs) > MaxPurge {
		return fmt.Errorf("onceward: %d records to purge, at most %d go into one call", len(p.IDs), MaxPurge)
	}
	return nil
}
