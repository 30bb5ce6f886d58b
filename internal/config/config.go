// Package config reads the gateway's configuration file: YAML, strict, every error with its line and column.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/oncehttp"
)

// Config is the file. What a flag of the command also says, the flag decides.
type Config struct {
	Upstream     string   `yaml:"upstream"`
	Listen       string   `yaml:"listen"`
	AdminListen  string   `yaml:"admin_listen"`
	Store        string   `yaml:"store"`
	SingleTenant bool     `yaml:"single_tenant"`
	Scope        string   `yaml:"scope"`
	RequireKey   bool     `yaml:"require_key"`
	Lease        Duration `yaml:"lease"`
	Drain        Duration `yaml:"drain"`
	Routes       []Route  `yaml:"routes"`
}

// Route is one route of the file. Fields left out have the defaults of onceward.Operation and oncehttp.Options.
type Route struct {
	Match       string         `yaml:"match"`
	Operation   string         `yaml:"operation"`
	Key         []string       `yaml:"key"`
	RequireKey  *bool          `yaml:"require_key"`
	Methods     []string       `yaml:"methods"`
	LeaveOut    []string       `yaml:"leave_out"`
	OnStatus    map[int]string `yaml:"on_status"`
	Repeatable  bool           `yaml:"repeatable"`
	Retention   Duration       `yaml:"retention"`
	Lease       Duration       `yaml:"lease"`
	Timeout     Duration       `yaml:"timeout"`
	MaxAttempts int            `yaml:"max_attempts"`
	Wait        Duration       `yaml:"wait"`
	OnDuplicate string         `yaml:"on_duplicate"`
	OnStoreDown string         `yaml:"on_store_down"`
	MaxBody     int64          `yaml:"max_body"`
	MaxResult   int            `yaml:"max_result"`
}

// Duration is written as 30s, 24h; empty is zero. It is kept as text until it is checked, for the place of an error.
type Duration string

// Value returns the duration; zero for what check has refused.
func (d Duration) Value() time.Duration {
	v, _ := d.parse()
	return v
}

func (d Duration) parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	v, err := time.ParseDuration(string(d))
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a duration: write it like 30s, 15m or 24h", string(d))
	}
	return v, nil
}

// Load reads and checks a file. All problems of its meaning are returned at once, each as FILE:LINE:COLUMN.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return parse(path, text)
}

func parse(path string, text []byte) (*Config, error) {
	var c Config
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&c)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("config %s: %s", path, yaml.FormatError(err, false, true))
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, fmt.Errorf("config %s: %s", path, yaml.FormatError(err, false, true))
	}
	check := checker{path: path, file: file}
	check.durations("$.", map[string]Duration{"lease": c.Lease, "drain": c.Drain})
	seen := map[string]int{}
	for i, r := range c.Routes {
		check.route(i, &r)
		if first, taken := seen[r.Operation]; taken && r.Operation != "" {
			check.bad(fmt.Sprintf("$.routes[%d].operation", i), fmt.Errorf("operation %q is route %d's already: give each route its own", r.Operation, first+1))
		}
		seen[r.Operation] = i
	}
	return &c, errors.Join(check.problems...)
}

type checker struct {
	path     string
	file     *ast.File
	problems []error
}

// bad notes a problem at the place of a YAML path.
func (c *checker) bad(at string, err error) {
	if err == nil {
		return
	}
	place := c.path
	if p, pathErr := yaml.PathString(at); pathErr == nil {
		if node, nodeErr := p.FilterFile(c.file); nodeErr == nil && node != nil {
			pos := node.GetToken().Position
			place = fmt.Sprintf("%s:%d:%d", c.path, pos.Line, pos.Column)
		}
	}
	c.problems = append(c.problems, fmt.Errorf("config %s: %w", place, err))
}

func (c *checker) durations(at string, fields map[string]Duration) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		_, err := fields[name].parse()
		c.bad(at+name, err)
	}
}

func (c *checker) route(i int, r *Route) {
	at := func(field string) string { return fmt.Sprintf("$.routes[%d].%s", i, field) }
	whole := fmt.Sprintf("$.routes[%d]", i)
	if r.Match == "" {
		c.bad(whole, errors.New(`a route needs match, such as "POST /pay"`))
	} else {
		c.bad(at("match"), gateway.CheckMatch(r.Match))
	}
	if r.Operation == "" {
		c.bad(whole, errors.New("a route needs operation, the name of its work"))
	}
	c.durations(whole+".", map[string]Duration{"retention": r.Retention, "lease": r.Lease, "timeout": r.Timeout, "wait": r.Wait})
	for n, text := range r.Key {
		_, err := oncehttp.ParseKeySource(text)
		c.bad(fmt.Sprintf("%s[%d]", at("key"), n), err)
	}
	for _, status := range slices.Sorted(maps.Keys(r.OnStatus)) {
		_, err := oncehttp.ParseOutcome(r.OnStatus[status])
		if status < 200 || status > 599 {
			err = fmt.Errorf("%d is not a final HTTP status", status)
		}
		c.bad(at("on_status"), err)
	}
	_, err := r.operation()
	c.bad(whole, err)
}

// operation turns the policies into the root's.
func (r *Route) operation() (onceward.Operation, error) {
	o := onceward.Operation{
		Name: r.Operation, Retention: r.Retention.Value(), Lease: r.Lease.Value(),
		Timeout: r.Timeout.Value(), MaxAttempts: r.MaxAttempts, Repeatable: r.Repeatable,
	}
	if r.Wait.Value() > 0 {
		o.OnInFlight = onceward.Wait(r.Wait.Value())
	}
	switch r.OnDuplicate {
	case "", "return_first":
	case "reject":
		o.OnDuplicate = onceward.Reject
	default:
		return o, fmt.Errorf("on_duplicate %q: use return_first or reject", r.OnDuplicate)
	}
	switch r.OnStoreDown {
	case "", "closed":
	case "open":
		o.OnStoreDown = onceward.Open
	default:
		return o, fmt.Errorf("on_store_down %q: use closed or open", r.OnStoreDown)
	}
	return o, nil
}

// Define defines the route's operation with the guard. base has what the command says for all routes.
func (r *Route) Define(g *onceward.Guard, base onceward.Operation, http oncehttp.Options) (gateway.Route, error) {
	o, err := r.operation()
	if err != nil {
		return gateway.Route{}, err
	}
	if o.Lease == 0 {
		o.Lease = base.Lease
	}
	if o.Timeout == 0 {
		o.Timeout = base.Timeout
	}
	op, err := g.Define(o)
	if err != nil {
		return gateway.Route{}, err
	}
	http.Methods, http.LeaveOut, http.MaxBody, http.MaxResult = r.Methods, r.LeaveOut, r.MaxBody, r.MaxResult
	if r.RequireKey != nil {
		http.RequireKey = *r.RequireKey
	}
	for _, text := range r.Key {
		source, err := oncehttp.ParseKeySource(text)
		if err != nil {
			return gateway.Route{}, err
		}
		http.Keys = append(http.Keys, source)
	}
	http.OnStatus = map[int]oncehttp.Outcome{}
	for status, word := range r.OnStatus {
		if http.OnStatus[status], err = oncehttp.ParseOutcome(word); err != nil {
			return gateway.Route{}, err
		}
	}
	return gateway.Route{Match: r.Match, Op: op, HTTP: &http}, nil
}
