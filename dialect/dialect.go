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

// The families. MySQL is MariaDB too: every statement is valid on both.
const (
	SQLite Dialect = iota + 1
	PostgreSQL
	MySQL
)

// String returns the family's name, which is also the folder of its SQL files.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "sqlite"
	case PostgreSQL:
		return "postgres"
	case MySQL:
		return "mysql"
	}
	return "unknown"
}

// Of tells which family the driver behind db speaks: ncruces, modernc and mattn for SQLite; pgx and lib/pq for PostgreSQL;
// go-sql-driver for MySQL and MariaDB.
func Of(db *sql.DB) (Dialect, error) {
	t := reflect.TypeOf(db.Driver())
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := strings.ToLower(t.PkgPath() + "." + t.Name())
	switch {
	case strings.Contains(name, "sqlite"):
		return SQLite, nil
	case strings.Contains(name, "jackc/pgx"), strings.Contains(name, "lib/pq"):
		return PostgreSQL, nil
	case strings.Contains(name, "mysql"):
		return MySQL, nil
	}
	return 0, fmt.Errorf("onceward: no SQL dialect for the driver %v: known are SQLite, PostgreSQL and MySQL; set Options.Dialect when it is wrapped", t)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,30}$`)

// Table returns how the names of tables begin: the schema, if there is one, and the prefix, which is checked to be an
// identifier of at most 31 characters, as the schema is.
func (d Dialect) Table(schema, prefix string) (string, error) {
	if !identifier.MatchString(prefix) {
		return "", fmt.Errorf("onceward: table prefix %q: use letters, digits and _, first no digit, at most 31", prefix)
	}
	if schema == "" {
		return prefix, nil
	}
	if d == SQLite {
		return "", fmt.Errorf("onceward: schema %q: SQLite has none, use a file of its own", schema)
	}
	if !identifier.MatchString(schema) {
		return "", fmt.Errorf("onceward: schema %q: use letters, digits and _, first no digit, at most 31", schema)
	}
	return schema + "." + prefix, nil
}
