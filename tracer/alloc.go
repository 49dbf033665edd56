package tracer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"memtrace/bpf"
	"memtrace/tracer/probe"
	"memtrace/tracer/recording"
	"memtrace/tracer/target"
)

// allocFamily counts the calls of the allocator's entries: exactly for each thread, by
// samples for each site.
type allocFamily struct {
	tracee   *tracee
	kernel   *kernel
	objects  bpf.AllocObjects
	returns  bpf.AllocReturns
	entries  []string // names of the entries; the index is what sites are keyed by
	groups   []allocGroup
	headers  bool // free sizes are known
	mutex    sync.Mutex
	links    []*probe.Links
	coverage coverage
	windows  windows
	course   allocCourse
}

// allocGroup is what one program is attached to in one file.
type allocGroup struct {
	allocator target.Allocator
	program   *ebpf.Program
	sites     []probe.Site
	kind      probe.Kind
}

func newAllocFamily() family { return &allocFamily{} }

func (f *allocFamily) name() string { return "alloc" }

// load sets the constants for the target's allocator and loads the programs.
func (f *allocFamily) load(_ context.Context, k *kernel, t *tracee) error {
	f.kernel, f.tracee = k, t
	f.returns = returnsSeen(k.features, t)
	spec, err := bpf.LoadAlloc()
	if err != nil {
		return fmt.Errorf("read the allocation probes: %w", err)
	}
	if err := f.setConstants(spec); err != nil {
		return fmt.Errorf("set up the allocation probes: %w", err)
	}
	f.sizeMaps(spec)
	for name, program := range spec.Programs {
		program.AttachType = k.features.AttachType(f.kindOf(name))
	}
	if err := k.load(spec, &f.objects); err != nil {
		return err
	}
	k.share("alloc_threads", f.objects.AllocThreads)
	return f.plan()
}

// kindOf is how the program of that name is attached.
func (f *allocFamily) kindOf(program string) probe.Kind {
	switch {
	case program == "alloc_return":
		return probe.Return
	case program != "alloc_free" && f.returns == bpf.AllocReturnsRETURNS_SESSION:
		return probe.Session
	}
	return probe.Entry
}

// allocators lists the process's allocators, the one that malloc leads to first.
func (f *allocFamily) allocators() []target.Allocator {
	return append([]target.Allocator{f.tracee.target.Allocator}, f.tracee.target.Others...)
}

// setConstants tells the programs about the options and the allocator.
func (f *allocFamily) setConstants(spec *ebpf.CollectionSpec) error {
	round, err := parseRound(f.tracee.options.Round)
	if err != nil {
		return fmt.Errorf("round: %w", err)
	}
	main := f.tracee.target.Allocator
	alone := len(f.tracee.target.Others) == 0
	f.headers = main.Name == "glibc" && alone
	var inside [64]bpf.AllocAddressRange
	count := 0
	for _, allocator := range f.allocators() {
		for _, r := range allocator.Inside {
			if count == len(inside) {
				return fmt.Errorf("the allocator's code lies in more than %d places", len(inside))
			}
			inside[count] = bpf.AllocAddressRange{Start: r.Start, End: r.End}
			count++
		}
	}
	var errs []error
	for name, value := range map[string]any{
		"exact":             f.tracee.options.Exact,
		"returns_seen":      f.returns,
		"sample_period":     f.tracee.options.SampleBytes,
		"chunk_headers":     f.headers,
		"zero_resize_frees": main.Name == "glibc" || main.Name == "tcmalloc",
		"nests_anywhere":    main.Name != "glibc" || !alone,
		"process_rounds":    round.ofProcess(),
		"inside_count":      uint32(count),
		"inside":            inside,
	} {
		errs = append(errs, spec.Variables[name].Set(value))
	}
	return errors.Join(errs...)
}

// sizeMaps sizes the family's own maps for the target.
func (f *allocFamily) sizeMaps(spec *ebpf.CollectionSpec) {
	spec.Maps["alloc_threads"].MaxEntries = f.kernel.threadSlots()
	if f.tracee.options.Exact {
		const blocks = 4 << 20 // every live block is followed
		spec.Maps["alloc_blocks"].MaxEntries = blocks
	}
}

// plan decides which program goes where.
func (f *allocFamily) plan() error {
	programs := map[probe.Operation]*ebpf.Program{
		probe.Malloc: f.objects.AllocMalloc, probe.Calloc: f.objects.AllocCalloc, probe.Realloc: f.objects.AllocRealloc,
		probe.Reallocarray: f.objects.AllocReallocarray, probe.PosixMemalign: f.objects.AllocPosixMemalign,
		probe.Memalign: f.objects.AllocMemalign, probe.NewAligned: f.objects.AllocNewAligned, probe.Free: f.objects.AllocFree,
	}
	for _, allocator := range f.allocators() {
		sites := map[probe.Operation][]probe.Site{}
		var made []probe.Site
		for _, entry := range allocator.Entries {
			if programs[entry.Does] == nil {
				continue
			}
			site := entry.Site(uint64(len(f.entries)))
			f.entries = append(f.entries, entry.Name)
			sites[entry.Does] = append(sites[entry.Does], site)
			if entry.Does.Makes() {
				made = append(made, site)
			}
		}
		// A return without its entry is ignored, an entry without its return is not: returns first.
		if f.returns == bpf.AllocReturnsRETURNS_ALL {
			f.groups = append(f.groups, allocGroup{allocator, f.objects.AllocReturn, made, probe.Return})
		}
		for does, program := range programs {
			if len(sites[does]) > 0 {
				f.groups = append(f.groups, allocGroup{allocator, program, sites[does], f.kindOfOperation(does)})
			}
		}
	}
	if len(f.entries) == 0 {
		return &target.Refusal{Reason: fmt.Sprintf("%s has none of the functions that memtrace probes", f.tracee.target.Allocator.Path)}
	}
	return nil
}

func (f *allocFamily) kindOfOperation(does probe.Operation) probe.Kind {
	if does == probe.Free || f.returns != bpf.AllocReturnsRETURNS_SESSION {
		return probe.Entry
	}
	return probe.Session
}

// tick adds a point to the course of the trace.
func (f *allocFamily) tick(atNS int64) error {
	if err := f.slice(); err != nil {
		return err
	}
	totals, err := f.totals()
	if err != nil {
		return err
	}
	in, _ := f.coverage.covered(monotonicNS())
	f.course.tick(atNS, in, totals)
	if !f.course.liveDue() {
		return nil
	}
	sites, err := readAll[uint64, bpf.AllocAllocSite](f.objects.AllocSites)
	if err != nil {
		return err
	}
	live := map[uint64]uint64{}
	for id, site := range sites {
		live[id] = site.LiveBytes
	}
	f.course.tickLive(atNS, live)
	return nil
}

// hits sums the probe hits of all processors.
func (f *allocFamily) hits() (uint64, error) {
	var each []uint64
	if err := f.objects.AllocHits.Lookup(uint32(0), &each); err != nil {
		return 0, fmt.Errorf("read the number of hits: %w", err)
	}
	var hits uint64
	for _, n := range each {
		hits += n
	}
	return hits, nil
}

// threads reads the figures of all slots that are in use.
func (f *allocFamily) threads() ([]bpf.AllocAllocThread, error) {
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return nil, err
	}
	return readSlots[bpf.AllocAllocThread](f.objects.AllocThreads, slots)
}

// totals is what was allocated so far: counted, or estimated where the probes were out for a
// time.
func (f *allocFamily) totals() (recording.AllocationTotals, error) {
	if _, gaps := f.coverage.covered(monotonicNS()); !gaps {
		return f.counted()
	}
	totals, _, err := f.estimate()
	return totals, err
}

// counted sums the figures of all threads.
func (f *allocFamily) counted() (recording.AllocationTotals, error) {
	threads, err := f.threads()
	var sum recording.AllocationTotals
	for i := range threads {
		add(&sum, &threads[i])
	}
	return sum, err
}

func add(sum *recording.AllocationTotals, t *bpf.AllocAllocThread) {
	sum.Allocs += t.Allocs
	sum.AllocBytes += t.AllocBytes
	sum.Frees += t.Frees
	sum.FreeBytes += t.FreeBytes
	sum.Reallocs += t.Reallocs
	sum.ReallocBytes += t.ReallocBytes
	sum.Failed += t.Failed
}

func (f *allocFamily) close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return errors.Join(f.detach(), f.objects.Close())
}
