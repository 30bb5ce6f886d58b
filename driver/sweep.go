package driver

import "context"

// Sweeper is the optional power to walk over all records in pages, without an index on what a finish changes.
type Sweeper interface {
	// Scan returns the next page behind page.After, in the store's own order. A record that stays as it is is seen
	// once in a full walk; one that comes, changes or goes meanwhile may or may not be.
	Scan(ctx context.Context, q Scan) (Page, error)
}

// Which chooses records of a scan.
type Which uint8

const (
	All     Which = iota
	Lapsed        // Processing whose lease and grace are over
	Open          // Processing
	Unclear       // Fail unknown
	Due           // what upkeep looks at: Processing, Fail unknown, and what has expired
)

// Scan asks for a page.
type Scan struct {
	After string // Page.Next of the page before; empty for the first
	Limit int    // rows looked at, at least 1; a page may hold fewer matches and still have a Next
	Which Which
}

// Page is one answer of a scan.
type Page struct {
	Snapshots []Snapshot // without Result.Data and Request
	Seen      int        // rows looked at
	Damaged   int        // rows that could not be read, see ErrDamaged
	Next      string     // empty: the walk is over
}
