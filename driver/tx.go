package driver

import (
	"context"
	"time"
)

// Tx is a transaction that the caller began and ends, as small as a store needs it. Placeholders are those of its
// database. One call at a time.
type Tx interface {
	// Exec runs a statement without rows.
	Exec(ctx context.Context, query string, args ...any) (TxResult, error)
	// Query calls each for every row. What a row holds is gone when each returns; a value is nil, an int64, a float64, a
	// bool, a string, a []byte or a time.Time, as the database driver gives it.
	Query(ctx context.Context, query string, each func(row []any) error, args ...any) error
}

// TxResult is what a statement did.
type TxResult struct {
	Affected     int64 // rows
	LastInsertID int64 // on MySQL and MariaDB; zero where there is none
}

// TxStore is the optional power of a store to work inside a caller's transaction.
type TxStore interface {
	// Bind returns the store as it works inside tx, for as long as tx is open. Its calls take effect when the caller
	// commits. A call waits for another transaction's claim of the same key at most lockWait, zero for as long as the
	// database's own setting, and then fails with ErrLocked; it fails with ErrConflict when the transaction has to be
	// rolled back and begun anew. A Finish whose claim is not there any more, because the transaction was rolled back under
	// it, fails with ErrLeaseLost. After each of them, and after any error that Store does not name, tx is good for a rollback only.
	Bind(tx Tx, lockWait time.Duration) Store
	// Check returns ErrOtherDatabase unless tx is of the store's own database. It is one statement in tx.
	Check(ctx context.Context, tx Tx) error
}
