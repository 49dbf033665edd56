package tracer

import (
	"golang.org/x/sys/unix"

	"memtrace/bpf"
)

// memoryCallNumbers are the numbers of the followed system calls, by the kernel half's.
var memoryCallNumbers = [bpf.MmapMemoryCallMEMORY_CALLS]uint32{
	bpf.MmapMemoryCallCALL_NONE:     1<<32 - 1,
	bpf.MmapMemoryCallCALL_MMAP:     unix.SYS_MMAP,
	bpf.MmapMemoryCallCALL_MUNMAP:   unix.SYS_MUNMAP,
	bpf.MmapMemoryCallCALL_MREMAP:   unix.SYS_MREMAP,
	bpf.MmapMemoryCallCALL_BRK:      unix.SYS_BRK,
	bpf.MmapMemoryCallCALL_MADVISE:  unix.SYS_MADVISE,
	bpf.MmapMemoryCallCALL_MPROTECT: unix.SYS_MPROTECT,
}
