package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"memtrace/tracer"
	"memtrace/tracer/finding"
	"memtrace/tracer/recording"
	"memtrace/tracer/watch"
)

const serveHelp = `memtrace serve traces without end and serves Prometheus metrics: one process, all of a name,
or all of a control group, while they come and go. Scrapes never wait on the processes. It
listens on loopback unless told otherwise; TLS and passwords come from a web configuration file.`

const serveExamples = `  memtrace serve --pid 4242
  memtrace serve --comm scorer --listen 0.0.0.0:9469 --web-config web.yml
  memtrace serve --cgroup /system.slice/scorer.service --probes alloc,arena
  memtrace serve --comm scorer --push-pyroscope http://pyroscope:4040
`

// serveFlags is the command line of memtrace serve.
type serveFlags struct {
	pid       int
	comm      string
	cgroup    string
	listen    string
	webConfig string
	every     time.Duration
	heapEvery time.Duration
	most      int
	sites     int
	options   tracer.Options
	push      pushFlags
}

// runServe is memtrace serve.
func runServe(ctx context.Context, e *environment, arguments []string) error {
	flags, err := parseServe(e, arguments)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	log := slog.New(slog.NewTextHandler(e.stderr, nil))
	targets := watch.New(flags.watchOptions(log))
	if flags.pid != 0 {
		if err := tracer.CanTrace(ctx, flags.pid); err != nil {
			return err
		}
	}
	server, err := servePages(flags.listen, flags.webConfig, newPages(targets, flags.sites, flags.webConfig != ""), log)
	if err != nil {
		return err
	}
	watched := make(chan error, 1)
	watching, endWatching := context.WithCancel(ctx)
	defer endWatching()
	go func() { watched <- targets.Run(watching) }()
	pushed := flags.push.start(watching, targets, log)
	select {
	case <-ctx.Done():
		err = server.stop(ctx)
	case err = <-server.failed:
		err = fmt.Errorf("serve: %w", err)
	}
	endWatching()
	<-pushed
	return errors.Join(err, <-watched)
}

func parseServe(e *environment, arguments []string) (*serveFlags, error) {
	s := &serveFlags{}
	overhead := percentValue(0.10)
	probes := probesValue{"alloc", "arena", "lock", "sched"}
	flags := e.flagSet("memtrace serve", serveHelp, serveExamples)
	flags.IntVarP(&s.pid, "pid", "p", 0, "trace this process")
	flags.StringVar(&s.comm, "comm", "", "trace all processes of this name, as /proc/PID/comm has it")
	flags.StringVar(&s.cgroup, "cgroup", "", "trace all processes of this control group and the groups below it")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:9469", "serve at this address")
	flags.StringVar(&s.webConfig, "web-config", "", "TLS and basic authentication, in the format of Prometheus's exporter toolkit")
	flags.Var(&probes, "probes", "any of "+strings.Join(tracer.ProbeNames(), ","))
	flags.StringVar(&s.options.Round, "round", "auto", "what separates two rounds of work, as for a trace")
	flags.Var(&overhead, "max-overhead", "hold each process's slowdown to this by pausing the probes; off never does")
	flags.DurationVar(&s.every, "every", 10*time.Second, "time between two readings of the probes")
	flags.DurationVar(&s.heapEvery, "heap-every", time.Minute, "time between two readings of the heap")
	flags.IntVar(&s.most, "most", 100, "trace at most this many processes at once")
	flags.IntVar(&s.sites, "sites", 20, "sites of a process that have a series of their own")
	s.push.add(flags)
	if err := parse(flags, arguments); err != nil {
		return nil, err
	}
	s.options.Probes, s.options.MaxOverhead, s.options.Version, s.options.HeapEvery = probes, float64(overhead), version(), s.heapEvery
	chosen := 0
	for _, name := range []string{"pid", "comm", "cgroup"} {
		if flags.Changed(name) {
			chosen++
		}
	}
	switch {
	case flags.NArg() > 0:
		return nil, usageError("unexpected word %q: memtrace serve takes flags only", flags.Arg(0))
	case chosen != 1:
		return nil, usageError("which processes? Give one of --pid PID, --comm NAME and --cgroup PATH")
	case flags.Changed("pid") && s.pid <= 0:
		return nil, usageError("--pid %d: want the number of a process", s.pid)
	case flags.Changed("comm") && s.comm == "" || flags.Changed("cgroup") && s.cgroup == "":
		return nil, usageError("--comm and --cgroup want a name")
	case s.every < time.Second || s.heapEvery < time.Second:
		return nil, usageError("--every and --heap-every want at least 1s")
	case s.most < 1 || s.sites < 1:
		return nil, usageError("--most and --sites want at least 1")
	}
	if err := tracer.CheckRound(s.options.Round); err != nil {
		return nil, usageError("--round: %w", err)
	}
	return s, s.push.check()
}

// watchOptions says which processes to trace and how.
func (s *serveFlags) watchOptions(log *slog.Logger) watch.Options {
	choose := watch.One(s.pid)
	s.options.Scope = ""
	switch {
	case s.comm != "":
		choose, s.options.Scope = watch.Named(s.comm), "comm:"+s.comm
	case s.cgroup != "":
		choose, s.options.Scope = watch.InGroup(s.cgroup), "cgroup:"+s.cgroup
	}
	return watch.Options{
		Choose: choose, Every: 2 * time.Second, Most: s.most,
		Start: func(ctx context.Context, pid int) (watch.Session, error) {
			options := s.options
			options.PID = pid
			follower, err := tracer.Follow(ctx, options, s.every)
			if err != nil {
				return nil, err
			}
			return follower, nil
		},
		Report: func(pid int, what string, err error) {
			if err != nil {
				log.Warn("not "+what, "pid", pid, "error", err)
				return
			}
			log.Info(what, "pid", pid)
		},
	}
}

// judged adds the findings to a recording that is handed out.
func judged(rec *recording.Recording) *recording.Recording {
	copied := *rec
	copied.Findings = finding.Judge(rec)
	return &copied
}
