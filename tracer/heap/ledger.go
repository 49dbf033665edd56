package heap

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"memtrace/tracer/recording"
)

// balance splits the process's resident memory into its parts. Heap pages come from the
// page map, sums from smaps_rollup; what no part explains is other anonymous memory.
func (p *pass) balance(process procfs.Proc) error {
	rollup, err := process.ProcSMapsRollup()
	if err != nil {
		return fmt.Errorf("read the resident memory of process %d: %w", process.PID, gone(err))
	}
	l := recording.Ledger{
		RSSBytes:          rollup.Rss,
		PSSBytes:          rollup.Pss,
		SwapBytes:         rollup.Swap,
		CommittedBytes:    rollup.Anonymous + rollup.Swap,
		FileBytes:         rollup.Rss - min(rollup.Anonymous, rollup.Rss),
		MmappedChunkBytes: p.mapped.resident,
	}
	for _, a := range p.arenas {
		l.ArenaFreeResidentBytes += a.tally.freeResident
		l.ArenaLiveResidentBytes += a.resident - min(a.tally.freeResident, a.resident)
	}
	if l.StackBytes, err = p.stacks(process); err != nil {
		return err
	}
	settle(&l)
	p.ledger = l
	return nil
}

// settle makes the parts add up: other anonymous memory is the rest. The target may have
// given memory back between the two readings; then the parts are cut, the surest last.
func settle(l *recording.Ledger) {
	rest := l.RSSBytes - l.FileBytes
	for _, part := range []*uint64{&l.ArenaFreeResidentBytes, &l.ArenaLiveResidentBytes, &l.MmappedChunkBytes, &l.StackBytes} {
		*part = min(*part, rest)
		rest -= *part
	}
	l.OtherAnonBytes = rest
}

// stacks returns the resident bytes of the threads' stacks: the mappings that hold a stack
// pointer, and those of exited threads that glibc keeps, which look the same.
func (p *pass) stacks(process procfs.Proc) (uint64, error) {
	pointers := stackPointers(process.PID)
	var regions []span
	sizes := map[uint64]bool{}
	guard := func(i int) uint64 {
		if i > 0 && !p.space.maps[i-1].Perms.Read && p.space.maps[i-1].EndAddr == p.space.maps[i].StartAddr {
			return uint64(p.space.maps[i-1].EndAddr - p.space.maps[i-1].StartAddr)
		}
		return 0
	}
	for i, m := range p.space.maps {
		region := spanOf(m)
		if m.Pathname == "[stack]" {
			regions = append(regions, region)
		} else if anonymous(m) && !p.claimed(region) && slices.ContainsFunc(pointers, region.contains) {
			regions = append(regions, region)
			if guard(i) != 0 {
				sizes[guard(i)+region.end-region.start] = true
			}
		}
	}
	for i, m := range p.space.maps {
		region := spanOf(m)
		if anonymous(m) && guard(i) != 0 && sizes[guard(i)+region.end-region.start] && !p.claimed(region) && !slices.Contains(regions, region) {
			regions = append(regions, region)
		}
	}
	var sum uint64
	for _, region := range regions {
		resident, err := p.pages.region(region.start, region.end)
		if errors.Is(err, ErrGone) {
			return 0, err
		}
		if err == nil {
			sum += resident.bytes(region.start, region.end)
		}
	}
	return sum, nil
}

// claimed tells whether the mapping holds heap memory.
func (p *pass) claimed(region span) bool {
	return p.inArena(region) || slices.ContainsFunc(p.mapped.spans, func(s span) bool { return region.start < s.end && s.start < region.end })
}

// stackPointers returns those of the threads that are in the kernel now; /proc hides the others'.
func stackPointers(pid int) []uint64 {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var pointers []uint64
	for _, task := range tasks {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", pid, task.Name()))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(line))
		if len(fields) < 3 {
			continue
		}
		if pointer, err := strconv.ParseUint(fields[len(fields)-2], 0, 64); err == nil {
			pointers = append(pointers, pointer)
		}
	}
	return pointers
}
