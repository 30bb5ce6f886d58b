// Package dialect knows what differs between the SQL families that Onceward speaks. No other package knows.
package dialect

import (
	"database/sql"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Dialect is one SQL family. The zero value is none.
type Dialect uint8

// The families.
const (
	SQLite Dialect = iota + 1
)

// String returns the family's name, which is also the folder of its SQL files.
func (d Dialect) String() string {
	if d == SQLite {
		return "sqlite"
	}
	return "unknown"
}

// Of tells which family the driver behind db speaks.
func Of(db *sql.DB) (Dialect, error) {
	t := reflect.TypeOf(db.Driver())
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := strings.ToLower(t.PkgPath() + "." + t.Name())
	if strings.Contains(name, "sqlite") {
		return SQLite, nil
	}
	return 0, fmt.Errorf("onceward: no SQL dialect for the driver %v: known is SQLite; set Options.Dialect when it is wrapped", t)
}

var prefix = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,30}$`)

// CheckPrefix refuses a table prefix that is not a plain identifier of at most 31 characters.
func CheckPrefix(p string) error {
	if !prefix.MatchString(p) {
		return fmt.Errorf("onceward: table prefix %q: use letters, digits and _, first no digit, at most 31", p)
	}
	return nil
}

// Full reports whether err says that there is no room for more data.
func (d Dialect) Full(err error) bool {
	return err != nil && strings.Contains(err.Error(), "database or disk is full")
}

// Busy reports whether err says that somebody else holds a lock, so that trying again can help.
func (d Dialect) Busy(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "database is locked") || strings.Contains(err.Error(), "database table is locked"))
}
