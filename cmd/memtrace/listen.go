package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"memtrace/tracer"
	"memtrace/tracer/watch"
)

// pageServer serves pages at an address until it is stopped.
type pageServer struct {
	server http.Server
	failed chan error // why it ended
}

// servePages begins to serve at an address, with TLS and passwords as a web configuration
// file says; no file, neither.
func servePages(address, webConfig string, handler http.Handler, log *slog.Logger) (*pageServer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen", address, err)
	}
	p := &pageServer{
		server: http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute},
		failed: make(chan error, 1),
	}
	go func() { p.failed <- web.Serve(listener, &p.server, &web.FlagConfig{WebConfigFile: &webConfig}, log) }()
	return p, nil
}

// stop answers what is being asked and ends.
func (p *pageServer) stop(ctx context.Context) error {
	return p.server.Shutdown(context.WithoutCancel(ctx))
}

// listenEvery is how often a trace with --listen renews what it serves.
const listenEvery = 5 * time.Second

// listen serves a running trace's metrics and pages, if the command line asks for it. stop
// is to be called when the trace has ended.
func (e *environment) listen(ctx context.Context, session *tracer.Session, flags *traceFlags) (stop func(), err error) {
	if flags.listen == "" {
		return func() {}, nil
	}
	publisher, err := session.Publish(ctx, listenEvery)
	if err != nil {
		return nil, err
	}
	one := &tracedOne{Publisher: publisher, target: watch.Target{PID: flags.options.PID, Comm: watch.CommOf(flags.options.PID)}, done: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := servePages(flags.listen, "", newPages(one, flags.options.Top, false), log)
	if err != nil {
		return nil, err
	}
	return func() {
		close(one.done)
		if err := server.stop(ctx); err != nil {
			log.Warn("stop serving", "error", err)
		}
	}, nil
}

// tracedOne is the process of one trace, as the pages want it.
type tracedOne struct {
	*tracer.Publisher
	target watch.Target
	done   chan struct{}
}

func (t *tracedOne) Targets() []watch.Target {
	target := t.target
	target.Session = t
	return []watch.Target{target}
}
func (t *tracedOne) Waiting() int          { return 0 }
func (t *tracedOne) Looked() bool          { return true }
func (t *tracedOne) Done() <-chan struct{} { return t.done }
func (t *tracedOne) Close() error          { return nil }
