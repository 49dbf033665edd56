package heap

import (
	"context"
	"errors"
	"fmt"
)

// Places are addresses of glibc's parameters in the process, for probes that watch them.
type Places struct {
	MmapThreshold uint64 // mp_.mmap_threshold
	ArenaMax      uint64 // mp_.arena_max
}

// Places tells where the parameters are.
func (r *Reader) Places() Places {
	return Places{
		MmapThreshold: r.at.Params + r.at.layout.params.mmapThreshold,
		ArenaMax:      r.at.Params + r.at.layout.params.arenaMax,
	}
}

// Limits reads how glibc is set up now.
func (r *Reader) Limits() (arenas int, mmapThresholdBytes uint64, err error) {
	p, err := readParams(r.memory, r.at.layout.params, r.at.Params)
	if err != nil {
		return 0, 0, err
	}
	limits := (&pass{params: p, cores: coresSeen(r.pid, r.at.layout)}).limits()
	return int(limits.ArenaLimit), limits.MmapThresholdBytes, nil
}

// ReadWord reads a pointer-sized value in the process pid.
func ReadWord(pid int, address uint64) (uint64, error) {
	return word(processMemory(pid), address)
}

// ReadCode reads length bytes at an address of the process pid.
func ReadCode(pid int, address uint64, length int) ([]byte, error) {
	code := make([]byte, length)
	return code, processMemory(pid).Read(address, code)
}

// maxResident bounds how much address space Resident looks at.
const maxResident = 1 << 38

// ErrTooLarge tells that there is more address space than Resident looks at.
var ErrTooLarge = errors.New("too much address space to look at page by page")

// Resident returns for each range of addresses, start and end, how many of its bytes are in
// memory. Pages of files and shared memory count as not resident.
func Resident(ctx context.Context, pid int, ranges [][2]uint64) ([]uint64, error) {
	pages, err := openPagemap(pid)
	if err != nil {
		return nil, err
	}
	defer pages.Close()
	resident := make([]uint64, len(ranges))
	var looked uint64
	for i, r := range ranges {
		if looked += r[1] - r[0]; looked > maxResident {
			return nil, ErrTooLarge
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		region, err := pages.region(r[0], r[1])
		if err != nil {
			return nil, fmt.Errorf("read what is resident: %w", err)
		}
		resident[i] = region.bytes(r[0], r[1])
	}
	return resident, nil
}
