package tracer

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"memtrace/bpf"
	"memtrace/tracer/probe"
	"memtrace/tracer/target"
)

// kernel holds what the families share in the kernel: the maps, and the way their objects
// are loaded.
type kernel struct {
	features probe.Features
	maps     bpf.SharedMaps
	unwind   *unwindTables
	shared   map[string]*ebpf.Map // the same maps by name
	cache    *btf.Cache
	programs []*ebpf.Program // loaded since takePrograms
}

// capacity is how much the shared maps hold. What does not fit is counted as lost.
type capacity struct {
	threads uint32
	stacks  uint32
	unwind  unwindCapacity
}

// Bounds of the capacity: a thread costs about 3 KiB in all families, a stack 1 KiB.
const (
	minThreads = 1 << 13
	maxThreads = 1 << 16
	maxStacks  = 1 << 15
)

// capacityFor sizes the maps for a target: slots are not reused, so a process that starts
// and ends threads needs several times as many as it has.
func capacityFor(threads int) capacity {
	const turnover = 8
	return capacity{threads: uint32(min(max(threads*turnover, minThreads), maxThreads)), stacks: maxStacks}
}

// openKernel makes the shared maps for a process, and puts its unwind tables into them.
func openKernel(size capacity, pid int, source unwindSource) (_ *kernel, err error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, noPrivilege(fmt.Errorf("lift the limit on locked memory: %w", err))
	}
	features, err := probe.DetectFeatures()
	if err != nil {
		return nil, noPrivilege(err)
	}
	k := &kernel{features: features, cache: btf.NewCache(), unwind: newUnwindTables(source)}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.close())
		}
	}()
	spec, err := bpf.LoadShared()
	if err != nil {
		return nil, fmt.Errorf("read the shared maps' description: %w", err)
	}
	size.unwind = k.unwind.capacity(source)
	if err := k.resize(spec, size); err != nil {
		return nil, err
	}
	if err := spec.LoadAndAssign(&k.maps, &ebpf.CollectionOptions{Cache: k.cache}); err != nil {
		return nil, noPrivilege(fmt.Errorf("make the shared maps: %w", err))
	}
	k.shared = map[string]*ebpf.Map{
		bpf.SharedMapCourse:         k.maps.Course,
		bpf.SharedMapLosses:         k.maps.Losses,
		bpf.SharedMapStackDrafts:    k.maps.StackDrafts,
		bpf.SharedMapStacks:         k.maps.Stacks,
		bpf.SharedMapTargets:        k.maps.Targets,
		bpf.SharedMapThreadCount:    k.maps.ThreadCount,
		bpf.SharedMapThreadSlots:    k.maps.ThreadSlots,
		bpf.SharedMapThreads:        k.maps.Threads,
		bpf.SharedMapUnwindBuckets:  k.maps.UnwindBuckets,
		bpf.SharedMapUnwindCache:    k.maps.UnwindCache,
		bpf.SharedMapUnwindMappings: k.maps.UnwindMappings,
		bpf.SharedMapUnwindRows:     k.maps.UnwindRows,
		bpf.SharedMapUnwindSpaces:   k.maps.UnwindSpaces,
	}
	if err := k.unwind.open(&k.maps); err != nil {
		return nil, err
	}
	return k, k.follow(pid, firstSpace, source)
}

// firstSpace is the space of the target itself; others are its children's.
const firstSpace = 0

// follow lets the kernel half know a process and what it has mapped.
func (k *kernel) follow(pid int, space uint32, source unwindSource) error {
	if err := k.unwind.Update(space, source); err != nil {
		return err
	}
	target := bpf.SharedTarget{Space: space}
	if err := k.maps.Targets.Put(uint32(pid), target); err != nil {
		return fmt.Errorf("note process %d as a target: %w", pid, err)
	}
	return nil
}

// draftsPerCPU is DRAFTS_PER_CPU of bpf/stack.h.
const draftsPerCPU = 4

// resize sets the shared maps' sizes in a description.
func (k *kernel) resize(spec *ebpf.CollectionSpec, size capacity) error {
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the processors: %w", err)
	}
	spec.Maps[bpf.SharedMapThreads].MaxEntries = size.threads
	spec.Maps[bpf.SharedMapStackDrafts].MaxEntries = uint32(processors) * draftsPerCPU
	spec.Maps[bpf.SharedMapStacks].MaxEntries = size.stacks
	spec.Maps[bpf.SharedMapUnwindMappings].MaxEntries = size.unwind.mappings
	spec.Maps[bpf.SharedMapUnwindBuckets].MaxEntries = size.unwind.buckets
	spec.Maps[bpf.SharedMapUnwindRows].MaxEntries = size.unwind.rows
	return nil
}

// share lets the families that are loaded later use a map of one that is loaded.
func (k *kernel) share(name string, m *ebpf.Map) { k.shared[name] = m }

// markGap notes that the allocation probes go out, or that they are in again.
func (k *kernel) markGap(out bool) error {
	var gaps uint64
	if err := k.maps.Course.Lookup(bpf.SharedCoursePartCOURSE_GAPS, &gaps); err != nil {
		return fmt.Errorf("read how often probes were out: %w", err)
	}
	if (gaps%2 == 1) == out {
		return nil
	}
	if err := k.maps.Course.Put(bpf.SharedCoursePartCOURSE_GAPS, gaps+1); err != nil {
		return fmt.Errorf("note that probes are out or in: %w", err)
	}
	return nil
}

// threadSlots is how many slots there are for threads: the size of a family's own array of
// figures for each thread.
func (k *kernel) threadSlots() uint32 { return k.maps.Threads.MaxEntries() }

// load loads a family's object into the kernel, with the shared maps in place of its own,
// and assigns its programs and maps to the fields of into. The caller has set constants,
// the sizes of the family's own maps and the programs' attach types before.
func (k *kernel) load(spec *ebpf.CollectionSpec, into any) error {
	replacements := map[string]*ebpf.Map{}
	for name, shared := range k.shared {
		own, found := spec.Maps[name]
		if !found {
			continue
		}
		own.MaxEntries = shared.MaxEntries()
		replacements[name] = shared
	}
	err := spec.LoadAndAssign(into, &ebpf.CollectionOptions{MapReplacements: replacements, Cache: k.cache})
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return fmt.Errorf("load the probes: the kernel refused a program: %+v", refused)
	}
	if err != nil {
		return noPrivilege(fmt.Errorf("load the probes: %w", err))
	}
	k.programs = append(k.programs, programsIn(reflect.ValueOf(into).Elem())...)
	return nil
}

// programsIn finds the programs that were assigned to the fields of a struct.
func programsIn(objects reflect.Value) []*ebpf.Program {
	var programs []*ebpf.Program
	for i := range objects.NumField() {
		field := objects.Field(i)
		if field.Kind() == reflect.Struct {
			programs = append(programs, programsIn(field)...)
		} else if program, ok := field.Interface().(*ebpf.Program); ok && program != nil {
			programs = append(programs, program)
		}
	}
	return programs
}

// takePrograms returns the programs that were loaded since it was called last.
func (k *kernel) takePrograms() []*ebpf.Program {
	programs := k.programs
	k.programs = nil
	return programs
}

// losses reads what was lost so far, by kind.
func (k *kernel) losses() (lost [bpf.SharedLossLOSS_KINDS]uint64, err error) {
	for kind := range lost {
		if err := k.maps.Losses.Lookup(bpf.SharedLoss(kind), &lost[kind]); err != nil {
			return lost, fmt.Errorf("read losses: %w", err)
		}
	}
	return lost, nil
}

func (k *kernel) close() error { return errors.Join(k.unwind.close(), k.maps.Close()) }

// noPrivilege turns the kernel's refusal of an unprivileged caller into the advice that
// helps; other errors pass.
func noPrivilege(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return &target.Refusal{Reason: err.Error(), Next: "run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"}
	}
	return err
}
