// Package storeurl opens the store that a URL names, as the command's flags and files write it.
package storeurl

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver behind postgres: URLs

	"github.com/onceward/onceward/dialect"
)

// Help says what a store URL is.
const Help = "store URL: sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE, mysql://USER:PASSWORD@HOST/DATABASE, or memory:"

const known = "known are sqlite:PATH, postgres://…, mysql://… and memory:"

// Errors of Parse and Open that a caller tells apart.
var (
	ErrUsage    = errors.New("usage") // the URL itself
	ErrNotFound = errors.New("not found")
)

// URL is a checked store URL. Its String has no password.
type URL struct {
	Scheme string          // memory, sqlite, postgres or mysql
	On     dialect.Dialect // of a SQL store
	Path   string          // of a SQLite file
	dsn    string          // of a server, for its driver
	shown  string
}

// String returns the URL without its password.
func (u *URL) String() string { return u.shown }

// kindError is an error of a kind, which its text does not repeat.
type kindError struct {
	kind error
	error
}

func (e *kindError) Is(target error) bool { return target == e.kind }
func (e *kindError) Unwrap() error        { return e.error }

func usage(format string, args ...any) error {
	return &kindError{ErrUsage, fmt.Errorf(format, args...)}
}

// Parse checks a URL without touching what it names. Errors: ErrUsage; none shows a password.
func Parse(text string) (*URL, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok {
		return nil, usage("store %q has no scheme: %s", text, known)
	}
	switch scheme {
	case "memory":
		if strings.TrimPrefix(rest, "//") != "" {
			return nil, usage("store memory: takes nothing behind the colon")
		}
		return &URL{Scheme: scheme, shown: "memory:"}, nil
	case "sqlite":
		return parseSQLite(text, strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql", "mysql", "mariadb":
	default:
		return nil, usage("store scheme %q is not known: %s", scheme, known)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, usage("the store URL can't be read: write what is not a letter or digit in user and password as %%XX")
	}
	// None of these shows any of the URL: what does not parse as meant may be a password.
	switch {
	case u.Opaque != "", strings.Contains(u.Path+u.RawQuery+u.Fragment, "@"):
		return nil, usage("the store URL has its user and password in the wrong place: write #, /, ?, @ and %% in them as %%23, %%2F, %%3F, %%40 and %%25")
	case u.Host == "":
		return nil, usage("the store URL names no host: %s", Help)
	case u.Fragment != "":
		return nil, usage("the store URL has a # in it: write it as %%23")
	case strings.Contains(strings.Trim(u.Path, "/"), "/"):
		return nil, usage("the store URL has more than one name behind the host: that is the database")
	}
	if scheme == "mysql" || scheme == "mariadb" {
		return parseMySQL(u)
	}
	shown := *u
	if q := shown.Query(); q.Has("password") || q.Has("sslpassword") {
		for _, secret := range []string{"password", "sslpassword"} {
			if q.Has(secret) {
				q.Set(secret, "xxxxx")
			}
		}
		shown.RawQuery = q.Encode()
	}
	return &URL{Scheme: "postgres", On: dialect.PostgreSQL, dsn: text, shown: shown.Redacted()}, nil
}

func parseSQLite(text, path string) (*URL, error) {
	switch {
	case strings.ContainsAny(path, "?#"):
		return nil, usage("store %q: sqlite: takes a path and no options; how the file is opened is settled", text)
	case path == "" || path == ":memory:":
		return nil, usage("store sqlite: needs a file, such as sqlite:onceward.db; for memory use memory:")
	}
	return &URL{Scheme: "sqlite", On: dialect.SQLite, Path: path, shown: "sqlite:" + path}, nil
}

// parseMySQL makes the driver's DSN of a URL. Its query is the driver's parameters.
func parseMySQL(u *url.URL) (*URL, error) {
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = "3306"
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	database := strings.Trim(u.Path, "/")
	if database == "" {
		return nil, usage("store %s: which database? mysql://USER:PASSWORD@HOST/DATABASE", u.Redacted())
	}
	cfg, err := mysql.ParseDSN("tcp(" + host + ":" + port + ")/" + url.PathEscape(database) + "?" + u.RawQuery)
	if err != nil {
		return nil, usage("store %s: a parameter that the MySQL driver does not know: %w", u.Redacted(), err)
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	return &URL{Scheme: "mysql", On: dialect.MySQL, dsn: cfg.FormatDSN(), shown: u.Redacted()}, nil
}

// Handle returns a handle on a server, with at most so many connections.
func (u *URL) Handle(connections int) (*sql.DB, error) {
	driver := map[dialect.Dialect]string{dialect.PostgreSQL: "pgx", dialect.MySQL: "mysql"}[u.On]
	db, err := sql.Open(driver, u.dsn)
	if err != nil {
		return nil, usage("store %s: %w", u, err) // the drivers' own parsers say what is wrong, without the password
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}
