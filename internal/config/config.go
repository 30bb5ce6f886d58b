// Package config reads the gateway's configuration file: YAML, strict, every error with its line and column.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
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
	AdminListen  *string  `yaml:"admin_listen"` // empty: none; nil: left out
	Store        string   `yaml:"store"`
	Schema       string   `yaml:"schema"`
	TablePrefix  string   `yaml:"table_prefix"`
	SingleTenant bool     `yaml:"single_tenant"`
	Scope        string   `yaml:"scope"`
	RequireKey   bool     `yaml:"require_key"`
	Lease        Duration `yaml:"lease"`
	Drain        Duration `yaml:"drain"`
	ReadTimeout  Duration `yaml:"read_timeout"`
	Routes       []Route  `yaml:"routes"`

	at place
}

// DefaultOperation is the operation of requests that no route names.
const DefaultOperation = "http"

// Place returns where a YAML path, such as $.scope, stands: FILE:LINE:COLUMN.
func (c *Config) Place(path string) string { return c.at.of(path) }

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
	RetriedFor  Duration       `yaml:"retried_for"`
	Resolve     string         `yaml:"resolve"`
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
	c.at = place{path, file}
	return &c, check(&c)
}

// place finds lines in a file.
type place struct {
	path string
	file *ast.File
}

func (p place) of(path string) string {
	if node := p.node(path); node != nil {
		return p.token(node)
	}
	return p.path
}

// token returns where a node stands; a mapping's own token is a colon in it.
func (p place) token(node ast.Node) string {
	if in, ok := node.(*ast.MappingNode); ok && len(in.Values) > 0 {
		node = in.Values[0]
	}
	if in, ok := node.(*ast.MappingValueNode); ok {
		node = in.Key
	}
	pos := node.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", p.path, pos.Line, pos.Column)
}

// node returns what stands at a YAML path, or nil.
func (p place) node(path string) ast.Node {
	at, err := yaml.PathString(path)
	if err != nil || p.file == nil {
		return nil
	}
	node, err := at.FilterFile(p.file)
	if err != nil {
		return nil
	}
	return node
}

// operation turns the policies into the root's. Words that do not exist, which check refuses, are the defaults.
func (r *Route) operation() onceward.Operation {
	o := onceward.Operation{
		Name: r.Operation, Retention: r.Retention.Value(), Lease: r.Lease.Value(),
		Timeout: r.Timeout.Value(), MaxAttempts: r.MaxAttempts, Repeatable: r.Repeatable, RetriedFor: r.RetriedFor.Value(),
	}
	if r.Resolve != "" {
		if u, err := gateway.CheckResolveURL(r.Resolve); err == nil {
			o.Resolve = gateway.ResolveAt(u, &gateway.ResolveOptions{MaxAnswer: r.MaxResult})
		}
	}
	if r.Wait.Value() > 0 {
		o.OnInFlight = onceward.Wait(r.Wait.Value())
	}
	if r.OnDuplicate == "reject" {
		o.OnDuplicate = onceward.Reject
	}
	if r.OnStoreDown == "open" {
		o.OnStoreDown = onceward.Open
	}
	return o
}

// guarded returns the methods of a route. Nil: those that are guarded without being named. A route that names GET means
// a GET that writes, and with it HEAD, which its pattern matches too.
func (r *Route) guarded() []string {
	if r.Methods != nil {
		return r.Methods
	}
	switch method := matchMethod(r.Match); method {
	case "":
		return nil
	case http.MethodGet:
		return []string{http.MethodGet, http.MethodHead}
	default:
		return []string{method}
	}
}

// matchMethod returns the method of an http.ServeMux pattern, empty for all.
func matchMethod(pattern string) string {
	method, _, found := strings.Cut(strings.TrimLeft(pattern, " \t"), " ")
	if !found {
		return ""
	}
	return method
}

// Define defines the route's operation with the guard. base has what the command says for all routes.
func (r *Route) Define(g *onceward.Guard, base onceward.Operation, opts oncehttp.Options) (gateway.Route, error) {
	o := r.operation()
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
	opts.Methods, opts.LeaveOut, opts.MaxBody, opts.MaxResult = r.guarded(), r.LeaveOut, r.MaxBody, r.MaxResult
	if r.RequireKey != nil {
		opts.RequireKey = *r.RequireKey
	}
	route := gateway.Route{Match: r.Match, Op: op, HTTP: &opts}
	if len(r.Key) > 0 {
		route.KeyHeaders = []string{}
	}
	for _, text := range r.Key {
		source, err := oncehttp.ParseKeySource(text)
		if err != nil {
			return gateway.Route{}, err
		}
		opts.Keys = append(opts.Keys, source)
		if name, ok := strings.CutPrefix(text, "header:"); ok {
			route.KeyHeaders = append(route.KeyHeaders, name)
		}
	}
	opts.OnStatus = map[int]oncehttp.Outcome{}
	for status, word := range r.OnStatus {
		if opts.OnStatus[status], err = oncehttp.ParseOutcome(word); err != nil {
			return gateway.Route{}, err
		}
	}
	return route, nil
}
