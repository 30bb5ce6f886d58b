package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/internal/config"
	"github.com/onceward/onceward/oncehttp"
	"github.com/onceward/onceward/store/sqlstore"
)

// serveOptions are the flags of serve, and what the configuration says where no flag does.
type serveOptions struct {
	upstream, listen, adminListen, scope, file string
	store                                      storeFlags
	janitor                                    janitorFlags
	singleTenant, requireKey                   bool
	lease, drain, readTimeout                  time.Duration

	routes       []config.Route
	upstreamFrom string // where it was said, for errors and the log
	scopeFrom    string

	target *url.URL
	caller func(*http.Request) (onceward.Scope, error) // nil: one tenant
}

const (
	// httpTimeout bounds an attempt over HTTP unless a route says otherwise.
	httpTimeout = 60 * time.Second
	// httpOperation is what no route names.
	httpOperation = config.DefaultOperation
)

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve --upstream URL (--single-tenant | --scope header:NAME|basic:user)",
		Short: "Run the gateway in front of a service",
		Long: `Run the gateway in front of a service.

A request that carries an Idempotency-Key (or X-Idempotency-Key) runs at the service once; duplicates get the first
answer. Without a configuration there is one operation, http, and the same key on another path is a mismatch.

--scope believes what it reads: header:NAME whoever sets that header, basic:user the user without looking at the
password. A duplicate gets the first answer before the service sees it, so something in front must have checked the
caller, or anybody gets anybody's answers.`,
		Example: "  onceward serve --upstream http://127.0.0.1:9000 --single-tenant\n" +
			"  onceward serve --upstream http://127.0.0.1:9000 --scope header:X-Account --store sqlite:/var/lib/onceward.db",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.fill(cmd); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return serve(cmd.Context(), &o, log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.upstream, "upstream", "", "base URL of the service")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of the gateway")
	f.StringVar(&o.adminListen, "admin-listen", "127.0.0.1:8081", "address of /healthz, /readyz and /metrics; empty: none")
	o.store.add(f, "sqlite:onceward.db", "")
	f.BoolVar(&o.singleTenant, "single-tenant", false, "all callers share one key space")
	f.StringVar(&o.scope, "scope", "", "the caller, whom something in front must have authenticated: header:NAME or basic:user (the password is not checked)")
	f.BoolVar(&o.requireKey, "require-key", false, "refuse a guarded request without a key")
	f.DurationVar(&o.lease, "lease", onceward.DefaultLease, "how long a claim holds without a heartbeat")
	f.DurationVar(&o.drain, "drain", 30*time.Second, "how long a SIGTERM waits for running attempts and their results, 0s: not at all; a second one ends it")
	o.janitor.add(f)
	f.StringVar(&o.file, "config", "", "configuration file (YAML)")
	return cmd
}

// fill adds what the file says where no flag does, and checks the whole.
func (o *serveOptions) fill(cmd *cobra.Command) (err error) {
	set := cmd.Flags().Changed
	o.upstreamFrom, o.scopeFrom = "--upstream", "--scope"
	if o.file != "" {
		c, err := config.Load(o.file)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		o.take(c, set)
	}
	switch {
	case o.upstream == "":
		return usage("serve needs --upstream, such as --upstream http://127.0.0.1:9000")
	case o.listen == "":
		return usage("--listen is empty: name an address, such as 127.0.0.1:8080")
	case o.singleTenant && o.scope != "":
		return usage("--single-tenant and --scope exclude each other")
	case !o.singleTenant && o.scope == "":
		also := ""
		if o.file != "" {
			also = "; " + o.file + " has neither scope: nor single_tenant: true, or a flag took it back"
		}
		return usage("serve needs to know whose key a key is: --scope header:NAME or basic:user, or --single-tenant when all callers may share one key space%s", also)
	}
	if err := o.janitor.check(); err != nil {
		return err
	}
	if o.lease < 10*time.Millisecond || o.drain < 0 {
		return usage("--lease must be at least 10ms, and --drain must not be negative")
	}
	if o.target, err = parseUpstream(o.upstream, o.upstreamFrom); err != nil {
		return err
	}
	if o.scope != "" {
		if o.caller, err = parseScope(o.scope, o.scopeFrom); err != nil {
			return err
		}
	} else {
		o.scopeFrom = strings.Replace(o.scopeFrom, "--scope", "--single-tenant", 1)
	}
	_, err = o.store.parse()
	return err
}

// take takes from the file what no flag says. Scope and single tenancy are one question: a flag for either answers it.
func (o *serveOptions) take(c *config.Config, set func(flag string) bool) {
	text := func(flag string, into *string, value string) bool {
		if value == "" || set(flag) {
			return false
		}
		*into = value
		return true
	}
	if text("upstream", &o.upstream, c.Upstream) {
		o.upstreamFrom = c.Place("$.upstream") + ": upstream"
	}
	text("listen", &o.listen, c.Listen)
	text("store", &o.store.url, c.Store)
	text("schema", &o.store.schema, c.Schema)
	text("table-prefix", &o.store.prefix, c.TablePrefix)
	if c.AdminListen != nil && !set("admin-listen") {
		o.adminListen = *c.AdminListen
	}
	switch {
	case o.scope != "" || o.singleTenant: // by a flag
	case c.Scope != "" && !set("scope"):
		o.scope, o.scopeFrom = c.Scope, c.Place("$.scope")+": scope"
	case c.SingleTenant && !set("single-tenant"):
		o.singleTenant, o.scopeFrom = true, c.Place("$.single_tenant")+": single_tenant"
	}
	if !set("require-key") {
		o.requireKey = c.RequireKey
	}
	if !set("lease") && c.Lease != "" {
		o.lease = c.Lease.Value()
	}
	if !set("drain") && c.Drain != "" {
		o.drain = c.Drain.Value()
	}
	o.readTimeout = c.ReadTimeout.Value()
	o.routes = c.Routes
}

// parseUpstream reads the service's URL; from says where it was said.
func parseUpstream(text, from string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		return nil, usage("%s %q needs http:// in front: http://%s", from, text, text)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage("%s %q: use a URL such as http://127.0.0.1:9000", from, text)
	}
	return u, nil
}

// serve runs until ctx ends, then drains.
func serve(ctx context.Context, o *serveOptions, log *slog.Logger) error {
	// Ports first: a second gateway started by mistake must not touch the store.
	public, err := listen(ctx, o.listen, "--listen")
	if err != nil {
		return err
	}
	defer func() { _ = public.Close() }()
	var office net.Listener
	adminAddress := "off"
	if o.adminListen != "" {
		if office, err = listen(ctx, o.adminListen, "--admin-listen"); err != nil {
			return err
		}
		defer func() { _ = office.Close() }()
		adminAddress = office.Addr().String()
	}

	storeName, err := o.store.name()
	if err != nil {
		return err
	}
	st, err := o.store.open(ctx, true)
	if err != nil {
		return away(err)
	}
	if storeName == "memory:" {
		log.Warn("onceward keeps its records in memory: they end with the process, and a retry after that runs again; use --store sqlite:PATH")
	}
	if o.scope == basicUser {
		log.Warn("onceward believes the user of a basic authentication and does not check the password: something in front must have, or anybody who names a user gets that user's answers")
	}
	tended := watch(st, log)
	a, err := newAdmin(tended, log)
	if err != nil {
		return errors.Join(err, st.close())
	}
	guard, err := onceward.New(tended, &onceward.Options{SingleTenant: o.singleTenant, Observer: a.observe, Logger: log})
	if err != nil {
		return errors.Join(err, st.close())
	}
	handler, err := o.handler(guard, log)
	if err != nil {
		return errors.Join(&exitError{exitUsage, err}, st.close())
	}

	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	adminSrv := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 2)
	go func() { failed <- srv.Serve(public) }()
	if office != nil {
		go func() { failed <- adminSrv.Serve(office) }()
	}
	upkeep := o.janitor.options(log)
	upkeep.Resolver, upkeep.Every = guard, min(max(o.lease/3, 100*time.Millisecond), upkeep.Every)
	sweeping, stopSweep := context.WithCancel(context.WithoutCancel(ctx))
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		if err := a.upkeep(sweeping, upkeep); err != nil {
			log.Error("onceward has no janitor", slog.Any("error", err))
		}
	}()
	log.Info("onceward serves", slog.String("listen", public.Addr().String()), slog.String("admin", adminAddress),
		slog.String("upstream", o.target.Redacted()), slog.String("store", storeName), slog.String("scope", o.whose()))

	var cause error
	select {
	case <-ctx.Done():
	case cause = <-failed:
	}
	log.Info("onceward drains: a second signal stops at once, and what runs is left to lapse",
		slog.Duration("at_most", o.drain), slog.Int64("attempts", a.running.Load()))
	a.draining.Store(true)
	cause = errors.Join(cause, drain(srv, guard, o.drain, log))
	stopSweep()
	<-swept
	_ = adminSrv.Close()
	a.probe.close()
	return errors.Join(cause, st.close())
}

// away gives a store that could not be opened its exit status, which says that the same may go well later. Not so tables of
// another version, and what is no store.
func away(err error) error {
	for _, other := range []error{sqlstore.ErrSchemaMissing, sqlstore.ErrSchemaOld, sqlstore.ErrSchemaNew} {
		if errors.Is(err, other) {
			return err
		}
	}
	if status(err) != exitFailure {
		return err
	}
	return &exitError{onceward.CodeStoreUnavailable.Exit(), err}
}

// whose says how callers are told apart, and where that was said.
func (o *serveOptions) whose() string {
	if o.scope == "" {
		return "single tenant (" + o.scopeFrom + ")"
	}
	return o.scope + " (" + o.scopeFrom + ")"
}

func listen(ctx context.Context, address, flag string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %s: %w: is another program there already? choose another address", flag, address, err)
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w: choose another address, such as 127.0.0.1:8080", flag, address, err)
	}
	return l, nil
}

// handler builds the gateway from flags and routes.
func (o *serveOptions) handler(guard *onceward.Guard, log *slog.Logger) (http.Handler, error) {
	base := onceward.Operation{Name: httpOperation, Lease: o.lease, Timeout: httpTimeout}
	shared := oncehttp.Options{RequireKey: o.requireKey, Scope: o.caller, Budget: oncehttp.NewBudget(256 << 20), Logger: log}
	op, err := guard.Define(base)
	if err != nil {
		return nil, err
	}
	own := shared
	opts := gateway.Options{Upstream: o.target, Logger: log, ReadTimeout: o.readTimeout, Default: gateway.Route{Op: op, HTTP: &own}}
	for i := range o.routes {
		route, err := o.routes[i].Define(guard, base, shared)
		if err != nil {
			return nil, err
		}
		opts.Routes = append(opts.Routes, route)
	}
	return gateway.New(&opts)
}
