package tracer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"memtrace/bpf"
	"memtrace/tracer/heap"
	"memtrace/tracer/probe"
)

// arenaFamily tells who was given which of glibc's arenas, and what malloc_trim did. What
// the allocator maps it takes from the mmap family.
type arenaFamily struct {
	tracee  *tracee
	kernel  *kernel
	objects bpf.ArenaObjects
	reader  *ringbuf.Reader
	heap    *heap.Reader
	limit   int
	get     uint64 // address of arena_get2, 0 = not found
	mutex   sync.Mutex
	given   []bpf.ArenaArenaEvent
	trims   []bpf.ArenaArenaEvent
	dropped uint64
	links   []*probe.Links
}

func newArenaFamily() family { return &arenaFamily{} }

func (f *arenaFamily) name() string { return "arena" }

// glibc tells whether there are arenas to watch.
func (f *arenaFamily) glibc() bool { return f.tracee.target.Allocator.Name == "glibc" }

// load finds the functions to probe and loads the programs.
func (f *arenaFamily) load(_ context.Context, k *kernel, t *tracee) (err error) {
	f.kernel, f.tracee = k, t
	if !f.glibc() {
		return nil
	}
	f.find()
	spec, err := bpf.LoadArena()
	if err != nil {
		return fmt.Errorf("read the arena probes: %w", err)
	}
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the processors: %w", err)
	}
	if err := spec.Variables["processors"].Set(uint32(processors)); err != nil {
		return fmt.Errorf("set up the arena probes: %w", err)
	}
	spec.Maps["arena_threads"].MaxEntries = k.threadSlots()
	spec.Maps["lock_threads"].MaxEntries = 1 // nobody's, unless the lock family shares its own
	for name, kind := range map[string]probe.Kind{
		"arena_get": probe.Entry, "arena_given": probe.Return, "arena_trim": probe.Entry, "arena_trimmed": probe.Return,
	} {
		spec.Programs[name].AttachType = k.features.AttachType(kind)
	}
	if err := k.load(spec, &f.objects); err != nil {
		return err
	}
	if f.reader, err = ringbuf.NewReader(f.objects.ArenaLog); err != nil {
		return fmt.Errorf("open the log of arenas: %w", err)
	}
	return nil
}

// find looks for glibc's state and for arena_get2. Without them the memory calls tell of
// arenas that are made, though not of those that are used again.
func (f *arenaFamily) find() {
	reader, err := heap.Open(f.tracee.pid)
	if err != nil {
		return
	}
	f.heap = reader
	limit, threshold, err := reader.Limits()
	if err != nil {
		return
	}
	f.limit = limit
	f.tracee.memory.watchThreshold(reader.Places().MmapThreshold, threshold)
	if runtime.GOARCH == "amd64" {
		f.get = findArenaGet(f.tracee.pid, &f.tracee.target.Allocator, reader.Places().ArenaMax)
	}
}

// attach puts the probes in, those of returns first.
func (f *arenaFamily) attach(context.Context) error {
	if !f.glibc() {
		return nil
	}
	if f.get != 0 {
		mapping := f.tracee.target.Allocator.Mapping
		site := probe.Site{Offset: f.get - mapping.Start + mapping.Offset}
		if err := f.attachPair(f.objects.ArenaGet, f.objects.ArenaGiven, site, site); err != nil {
			return err
		}
	}
	trim, found := f.tracee.target.Allocator.Find("malloc_trim")
	if !found {
		return nil
	}
	return f.attachPair(f.objects.ArenaTrim, f.objects.ArenaTrimmed, probe.Site{Offset: trim.Offset}, probe.Site{Offset: trim.Offset})
}

// attachPair probes a function's entry and return.
func (f *arenaFamily) attachPair(entry, leave *ebpf.Program, at, from probe.Site) error {
	if err := f.attachOne(leave, from, probe.Return); err != nil {
		return err
	}
	return f.attachOne(entry, at, probe.Entry)
}

func (f *arenaFamily) attachOne(program *ebpf.Program, site probe.Site, kind probe.Kind) error {
	file, err := f.tracee.target.OpenMapped(f.tracee.target.Allocator.Mapping)
	if err != nil {
		return fmt.Errorf("open the allocator: %w", err)
	}
	defer file.Close()
	links, err := f.kernel.features.Attach(program, file, []probe.Site{site}, f.tracee.pid, kind)
	if err != nil {
		return err
	}
	f.links = append(f.links, links)
	return nil
}

// pause and resume do nothing: the probes are rare.
func (f *arenaFamily) pause() error  { return nil }
func (f *arenaFamily) resume() error { return nil }

// tick takes in what has come, so that the log does not fill.
func (f *arenaFamily) tick(int64) error { return f.drain() }

// drain takes in the events that are there.
func (f *arenaFamily) drain() error {
	if f.reader == nil {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	err := drainRing(f.reader, func(e *bpf.ArenaArenaEvent) {
		list := &f.given
		if e.Kind == bpf.ArenaArenaEventKindARENA_TRIM {
			list = &f.trims
		}
		if len(*list) == maxArenaEvents {
			f.dropped++
			return
		}
		*list = append(*list, *e)
	})
	if err != nil {
		return fmt.Errorf("read the log of arenas: %w", err)
	}
	return nil
}

// stop takes the probes out for good.
func (f *arenaFamily) stop() error { return f.detach() }

func (f *arenaFamily) detach() error {
	err := closeAll(f.links)
	f.links = nil
	return err
}

// hits sums the probe hits of all threads.
func (f *arenaFamily) hits() (uint64, error) {
	if f.objects.ArenaThreads == nil {
		return 0, nil
	}
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return 0, err
	}
	threads, err := readSlots[bpf.ArenaArenaThread](f.objects.ArenaThreads, slots)
	var hits uint64
	for i := range threads {
		hits += threads[i].Hits
	}
	return hits, err
}

func (f *arenaFamily) close() error {
	errs := []error{f.detach()}
	if f.reader != nil {
		errs = append(errs, f.reader.Close())
	}
	if f.heap != nil {
		errs = append(errs, f.heap.Close())
		f.heap = nil
	}
	return errors.Join(append(errs, f.objects.Close())...)
}
