package dialect

import (
	"errors"
	"reflect"
	"strings"
)

// Full reports whether err says that there is no room for more data.
func (d Dialect) Full(err error) bool {
	switch d {
	case SQLite:
		return says(err, "database or disk is full")
	case PostgreSQL:
		return state(err) == "53100"
	case MySQL:
		return oneOf(number(err), 1021, 1041, 1114) // disk, memory, table
	}
	return false
}

// Busy reports whether err says that somebody else holds a lock and that waiting for it was given up. On MySQL the
// statement was rolled back, and its transaction was not.
func (d Dialect) Busy(err error) bool {
	switch d {
	case SQLite:
		return says(err, "database is locked") || says(err, "database table is locked")
	case PostgreSQL:
		return state(err) == "55P03"
	case MySQL:
		return oneOf(number(err), 1205, 3572)
	}
	return false
}

// Conflict reports whether err says that a transaction was rolled back because of another one, and would have gone well
// alone: a deadlock, a failed serialization.
func (d Dialect) Conflict(err error) bool {
	switch d {
	case SQLite:
		return says(err, "SQLITE_BUSY_SNAPSHOT")
	case PostgreSQL:
		s := state(err)
		return s == "40001" || s == "40P01"
	case MySQL:
		return oneOf(number(err), 1213, 1020) // deadlock, "Record has changed since last read" (MariaDB's snapshot isolation)
	}
	return false
}

// NoTable reports whether err says that a table, schema or database is not there.
func (d Dialect) NoTable(err error) bool {
	switch d {
	case SQLite:
		return says(err, "no such table")
	case PostgreSQL:
		s := state(err)
		return s == "42P01" || s == "3F000"
	case MySQL:
		return oneOf(number(err), 1146, 1049)
	}
	return false
}

func says(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// state returns the SQLSTATE of a PostgreSQL error; pgx and lib/pq have this method.
func state(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// number returns the number of a MySQL error. go-sql-driver has it as a field, so no interface can ask for it, and
// importing the driver would bring it into every program.
func number(err error) uint64 {
	switch e := err.(type) { //nolint:errorlint // this is the walk
	case nil:
		return 0
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if n := number(one); n != 0 {
				return n
			}
		}
		return 0
	}
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct && v.Type().Name() == "MySQLError" {
		if n := v.FieldByName("Number"); n.IsValid() && n.CanUint() {
			return n.Uint()
		}
	}
	return number(errors.Unwrap(err))
}

func oneOf(n uint64, these ...uint64) bool {
	for _, one := range these {
		if n == one {
			return true
		}
	}
	return false
}
