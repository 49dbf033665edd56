package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"memtrace/output"
	"memtrace/tracer/recording"
)

// webAddress completes an address to listen at: a port alone, and an address without a
// host, are on loopback.
func webAddress(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		return "", fmt.Errorf("%q: want an address such as localhost:8080", text)
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}

// servePprof shows the recording in pprof's own web interface until Ctrl-C.
func (e *environment) servePprof(ctx context.Context, rec *recording.Recording, address string, options output.Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	parsed, err := pprofProfile(rec, options)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve the recording: %w; give --http another address", err)
	}
	defer listener.Close()
	shown := listener.Addr().String()
	return driver.PProf(&driver.Options{
		Flagset:    &pprofFlags{arguments: []string{"-no_browser", "-http=" + shown, "recording"}, set: flag.NewFlagSet("pprof", flag.ContinueOnError)},
		Fetch:      fixedProfile{parsed},
		UI:         quietUI{e.stderr},
		HTTPServer: func(args *driver.HTTPServerArgs) error { return e.serveHandlers(ctx, listener, args.Handlers) },
	})
}

// pprofProfile makes a pprof profile of the recording.
func pprofProfile(rec *recording.Recording, options output.Options) (*profile.Profile, error) {
	format, err := output.FormatForFile("recording.pb.gz")
	if err != nil {
		return nil, err
	}
	var written bytes.Buffer
	if err := format.Write(&written, rec, options); err != nil {
		return nil, fmt.Errorf("make a profile of the recording: %w", err)
	}
	return profile.Parse(&written)
}

// serveHandlers serves pprof's pages until the context ends.
func (e *environment) serveHandlers(ctx context.Context, listener net.Listener, handlers map[string]http.Handler) error {
	mux := http.NewServeMux()
	for path, handler := range handlers {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle(path, handler)
	}
	server := &http.Server{Handler: sameHost(listener.Addr(), mux), ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(e.stderr, "the recording is at http://%s/ until Ctrl-C\n", listener.Addr())
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the recording: %w", err)
	}
	return nil
}

// sameHost refuses, on loopback, requests that name another host: a foreign web page can
// make a browser send such requests, but not under loopback's own name.
func sameHost(at net.Addr, next http.Handler) http.Handler {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this page is served on loopback only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fixedProfile hands pprof the one profile that it is to show.
type fixedProfile struct{ profile *profile.Profile }

func (f fixedProfile) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return f.profile, "", nil
}

// pprofFlags is pprof's command line, made by memtrace.
type pprofFlags struct {
	set       *flag.FlagSet
	arguments []string
}

func (f *pprofFlags) Bool(name string, value bool, usage string) *bool {
	return f.set.Bool(name, value, usage)
}

func (f *pprofFlags) Int(name string, value int, usage string) *int {
	return f.set.Int(name, value, usage)
}

func (f *pprofFlags) Float64(name string, value float64, usage string) *float64 {
	return f.set.Float64(name, value, usage)
}

func (f *pprofFlags) String(name, value, usage string) *string {
	return f.set.String(name, value, usage)
}

func (f *pprofFlags) StringList(name, value, usage string) *[]*string {
	return &[]*string{f.set.String(name, value, usage)}
}

func (f *pprofFlags) ExtraUsage() string { return "" }

func (f *pprofFlags) AddExtraUsage(string) {}

func (f *pprofFlags) Parse(func()) []string {
	if f.set.Parse(f.arguments) != nil {
		return nil
	}
	return f.set.Args()
}

// quietUI passes pprof's complaints on and drops its progress.
type quietUI struct{ errors io.Writer }

func (quietUI) ReadLine(string) (string, error) { return "", io.EOF }

func (quietUI) Print(...any) {}

func (u quietUI) PrintErr(words ...any) {
	fmt.Fprintln(u.errors, "memtrace: "+strings.TrimSpace(fmt.Sprint(words...)))
}

func (quietUI) IsTerminal() bool { return false }

func (quietUI) WantBrowser() bool { return false }

func (quietUI) SetAutoComplete(func(string) string) {}
