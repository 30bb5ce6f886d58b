package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/gateway"
	"github.com/onceward/onceward/internal/config"
	"github.com/onceward/onceward/oncehttp"
)

// serveOptions are the flags of serve; the configuration fills in what no flag says.
type serveOptions struct {
	config.Config
	file  string
	lease time.Duration
	drain time.Duration
}

// httpTimeout bounds an attempt over HTTP unless a route says otherwise.
const httpTimeout = 60 * time.Second

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve --upstream URL (--single-tenant | --scope header:NAME|basic:user)",
		Short: "Run the gateway in front of a service",
		Long: `Run the gateway in front of a service.

A request that carries an Idempotency-Key (or X-Idempotency-Key) runs at the service once; duplicates get the first
answer. Without a configuration there is one operation, http, and the same key on another path is a mismatch.`,
		Example: "  onceward serve --upstream http://127.0.0.1:9000 --single-tenant\n" +
			"  onceward serve --upstream http://127.0.0.1:9000 --scope header:X-Account --store sqlite:/var/lib/onceward.db",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.fill(cmd); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return serve(cmd.Context(), &o, log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Upstream, "upstream", "", "base URL of the service")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "address of the gateway")
	f.StringVar(&o.AdminListen, "admin-listen", "127.0.0.1:8081", "address of /healthz, /readyz and /metrics")
	f.StringVar(&o.Store, "store", "sqlite:onceward.db", storeHelp)
	f.BoolVar(&o.SingleTenant, "single-tenant", false, "all callers share one key space")
	f.StringVar(&o.Scope, "scope", "", "the authenticated caller: header:NAME or basic:user")
	f.BoolVar(&o.RequireKey, "require-key", false, "refuse a guarded request without a key")
	f.DurationVar(&o.lease, "lease", onceward.DefaultLease, "how long a claim holds without a heartbeat")
	f.DurationVar(&o.drain, "drain", 30*time.Second, "how long a SIGTERM waits for running attempts and their results")
	f.StringVar(&o.file, "config", "", "configuration file (YAML)")
	return cmd
}

// fill adds what the file says where no flag does, and checks the whole.
func (o *serveOptions) fill(cmd *cobra.Command) error {
	if o.file != "" {
		c, err := config.Load(o.file)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		flags := o.Config
		set := cmd.Flags().Changed
		o.Config = *c
		pick := func(flag string, into *string, value string) {
			if set(flag) || *into == "" {
				*into = value
			}
		}
		pick("upstream", &o.Upstream, flags.Upstream)
		pick("listen", &o.Listen, flags.Listen)
		pick("admin-listen", &o.AdminListen, flags.AdminListen)
		pick("store", &o.Store, flags.Store)
		pick("scope", &o.Scope, flags.Scope)
		if set("single-tenant") {
			o.SingleTenant = flags.SingleTenant
		}
		if set("require-key") {
			o.RequireKey = flags.RequireKey
		}
		if v := o.Lease.Value(); !set("lease") && v > 0 {
			o.lease = v
		}
		if v := o.Drain.Value(); !set("drain") && v > 0 {
			o.drain = v
		}
	}
	switch {
	case o.Upstream == "":
		return usage("serve needs --upstream, such as --upstream http://127.0.0.1:9000")
	case o.SingleTenant && o.Scope != "":
		return usage("--single-tenant and --scope exclude each other")
	case !o.SingleTenant && o.Scope == "":
		return usage("serve needs to know whose key a key is: --scope header:NAME or basic:user, or --single-tenant when all callers may share one key space")
	}
	_, _, err := parseStore(o.Store)
	return err
}

// serve runs until ctx ends, then drains.
func serve(ctx context.Context, o *serveOptions, log *slog.Logger) error {
	upstream, err := url.Parse(o.Upstream)
	if err != nil {
		return usage("--upstream: %w", err)
	}
	// Ports first: a second gateway started by mistake must not touch the store.
	public, err := listen(ctx, o.Listen, "--listen")
	if err != nil {
		return err
	}
	defer func() { _ = public.Close() }()
	admin, err := listen(ctx, o.AdminListen, "--admin-listen")
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()

	st, err := openStore(ctx, o.Store, true)
	if err != nil {
		return err
	}
	a, err := newAdmin(st)
	if err != nil {
		return errors.Join(err, st.close())
	}
	guard, err := onceward.New(st, &onceward.Options{SingleTenant: o.SingleTenant, Observer: a.metrics.Observe, Logger: log})
	if err != nil {
		return errors.Join(err, st.close())
	}
	handler, err := o.handler(guard, upstream, log)
	if err != nil {
		return errors.Join(&exitError{exitUsage, err}, st.close())
	}

	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	adminSrv := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 2)
	go func() { failed <- srv.Serve(public) }()
	go func() { failed <- adminSrv.Serve(admin) }()
	sweeping, stopSweep := context.WithCancel(context.WithoutCancel(ctx))
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		a.sweep(sweeping, min(max(o.lease/3, 100*time.Millisecond), 5*time.Second), log)
	}()
	log.Info("onceward serves", slog.String("listen", public.Addr().String()), slog.String("admin", admin.Addr().String()),
		slog.String("upstream", upstream.Redacted()), slog.String("store", o.Store))

	var cause error
	select {
	case <-ctx.Done():
	case cause = <-failed:
	}
	log.Info("onceward drains", slog.Duration("at_most", o.drain))
	a.draining.Store(true)
	cause = errors.Join(cause, drain(srv, guard, o.drain, log))
	stopSweep()
	<-swept
	_ = adminSrv.Close()
	return errors.Join(cause, st.close())
}

// drain stops accepting and lets attempts and unrecorded results end. What does not end in time is left to lapse.
func drain(srv *http.Server, guard *onceward.Guard, limit time.Duration, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := srv.Shutdown(ctx)
	if err != nil {
		_ = srv.Close()
	}
	lost, closeErr := guard.Close(ctx)
	if err == nil && closeErr == nil {
		log.Info("onceward drained")
		return nil
	}
	log.Warn("onceward stops with attempts unfinished: their records lapse and are recovered", slog.Int("unrecorded_results", lost))
	return &exitError{exitTimeout, fmt.Errorf("not drained after %v: raise --drain, or lower the timeouts", limit)}
}

func listen(ctx context.Context, address, flag string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: is another program there already? choose another address", flag, address, err)
	}
	return l, nil
}

// handler builds the gateway from flags and routes.
func (o *serveOptions) handler(guard *onceward.Guard, upstream *url.URL, log *slog.Logger) (http.Handler, error) {
	base := onceward.Operation{Name: "http", Lease: o.lease, Timeout: httpTimeout}
	shared := oncehttp.Options{RequireKey: o.RequireKey, Budget: oncehttp.NewBudget(256 << 20)}
	if o.Scope != "" {
		var err error
		if shared.Scope, err = parseScope(o.Scope); err != nil {
			return nil, err
		}
	}
	op, err := guard.Define(base)
	if err != nil {
		return nil, err
	}
	own := shared
	opts := gateway.Options{Upstream: upstream, Logger: log, Default: gateway.Route{Op: op, HTTP: &own}}
	for i := range o.Routes {
		route, err := o.Routes[i].Define(guard, base, shared)
		if err != nil {
			return nil, err
		}
		opts.Routes = append(opts.Routes, route)
	}
	return gateway.New(&opts)
}
