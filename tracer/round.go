package tracer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"memtrace/bpf"
	"memtrace/tracer/probe"
)

// drainEvery is how often the log of rounds is read: it has room for 30,000 rounds.
const drainEvery = 50 * time.Millisecond

// roundFamily cuts the target's work into rounds.
type roundFamily struct {
	tracee  *tracee
	kernel  *kernel
	spec    roundSpec
	objects bpf.RoundObjects
	places  []roundPlace // where the boundary is a function or a marker
	log     *roundLog
	links   []io.Closer
	beside  repeats // reads the log, and is the clock of rounds by the clock
}

// rawTracepoint is a tracepoint of the kernel and the program for it.
type rawTracepoint struct {
	name    string
	program *ebpf.Program
}

func newRoundFamily() family { return &roundFamily{} }

func (f *roundFamily) name() string { return "round" }

// load finds out where the boundaries are, and loads the programs.
func (f *roundFamily) load(_ context.Context, k *kernel, t *tracee) (err error) {
	f.kernel, f.tracee = k, t
	if f.spec, err = parseRound(t.options.Round); err != nil {
		return fmt.Errorf("round: %w", err)
	}
	if f.places, err = t.roundPlaces(f.spec); err != nil {
		return err
	}
	spec, err := bpf.LoadRound()
	if err != nil {
		return fmt.Errorf("read the probes of rounds: %w", err)
	}
	if err := spec.Variables["syscall_kinds"].Set(syscallKinds()); err != nil {
		return fmt.Errorf("set up the probes of rounds: %w", err)
	}
	for _, name := range []string{"alloc_threads", "round_threads"} {
		spec.Maps[name].MaxEntries = k.threadSlots()
	}
	spec.Programs["round_function"].AttachType = k.features.AttachType(probe.Entry)
	if f.spec.kind == roundsLog {
		if err := spec.Variables["log_length"].Set(uint32(len(f.spec.name))); err != nil {
			return fmt.Errorf("set up the probes of rounds: %w", err)
		}
	}
	if err := k.load(spec, &f.objects); err != nil {
		return err
	}
	if f.spec.kind == roundsLog {
		if err := putAutomaton(f.objects.LogStates, f.spec.name); err != nil {
			return err
		}
	}
	f.log, err = openRoundLog(f.objects.RoundLog, t, f.tid)
	return err
}

// tid is the id of the thread of a slot, 0 when it is not known.
func (f *roundFamily) tid(slot uint32) int {
	var stored bpf.SharedThread
	if err := f.kernel.maps.Threads.Lookup(slot, &stored); err != nil {
		return 0
	}
	return int(stored.Tid)
}

// attach puts the probes in and begins to read the log.
func (f *roundFamily) attach(context.Context) error {
	f.beside.start(drainEvery, func() error { return f.log.drain(false) })
	switch f.spec.kind {
	case roundsAuto:
		return f.attachTracepoints(rawTracepoint{"sys_enter", f.objects.RoundEnter}, rawTracepoint{"sys_exit", f.objects.RoundExit})
	case roundsFunction, roundsMarker:
		return f.attachPlaces()
	case roundsLog:
		return f.attachTracepoints(rawTracepoint{"sys_enter", f.objects.RoundLogEnter}, rawTracepoint{"sys_exit", f.objects.RoundLogExit})
	case roundsEvery:
		return f.attachClock()
	}
	return nil
}

// attachTracepoints attaches programs to raw tracepoints.
func (f *roundFamily) attachTracepoints(points ...rawTracepoint) error {
	for _, point := range points {
		one, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: point.name, Program: point.program})
		if err != nil {
			return noPrivilege(fmt.Errorf("attach to %s: %w", point.name, err))
		}
		f.links = append(f.links, one)
	}
	return nil
}

// attachPlaces puts the boundary into the target's code.
func (f *roundFamily) attachPlaces() error {
	for _, place := range f.places {
		file, err := f.tracee.target.OpenMapped(place.mapping)
		if err != nil {
			return fmt.Errorf("open the file of the round's boundary: %w", err)
		}
		links, err := f.kernel.features.Attach(f.objects.RoundFunction, file, place.sites, f.tracee.pid, probe.Entry)
		file.Close()
		if err != nil {
			return err
		}
		f.links = append(f.links, links)
	}
	return nil
}

// pause and resume do nothing: without the allocation probes rounds still have their times,
// and the kernel half knows which of them are incomplete.
func (f *roundFamily) pause() error  { return nil }
func (f *roundFamily) resume() error { return nil }

// hits sums the system calls that were looked at; boundaries of the process count too.
func (f *roundFamily) hits() (uint64, error) {
	threads, err := f.threads()
	var hits uint64
	for i := range threads {
		hits += threads[i].Hits
	}
	return hits, err
}

// threads reads the figures of all slots that are in use.
func (f *roundFamily) threads() ([]bpf.RoundRoundThread, error) {
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return nil, err
	}
	return readSlots[bpf.RoundRoundThread](f.objects.RoundThreads, slots)
}

// stop takes the probes out for good.
func (f *roundFamily) stop() error {
	err := closeAll(f.links)
	f.links = nil
	f.beside.stop()
	return err
}

func (f *roundFamily) close() error {
	err := f.stop()
	if f.log != nil {
		err = errors.Join(err, f.log.close())
		f.log = nil
	}
	return errors.Join(err, f.objects.Close())
}
