package tracer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"memtrace/tracer/target"
)

// Where the kernel's tracepoints are described; the second is the older place.
var tracefsPlaces = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// mountTracefs mounts the file system that tracepoints of system calls are opened through,
// unless it is there.
func mountTracefs() error {
	for _, place := range tracefsPlaces {
		var info unix.Statfs_t
		if err := unix.Statfs(place, &info); err == nil && info.Type == unix.TRACEFS_MAGIC {
			return nil
		}
	}
	place := tracefsPlaces[0]
	err := unix.Mount("tracefs", place, "tracefs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err == nil || errors.Is(err, unix.EBUSY) {
		return nil
	}
	return &target.Refusal{
		Reason: fmt.Sprintf("futex calls cannot be traced: tracefs is not mounted, and mounting it failed: %v", err),
		Next:   fmt.Sprintf("mount -t tracefs tracefs %s, or leave locks out with --probes alloc,arena,sched,mmap", place),
	}
}
