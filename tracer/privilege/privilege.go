// Package privilege gives up what memtrace needs no longer once its probes are in.
package privilege

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tracing are the capabilities that a running trace needs: probes are put in again by the
// duty cycle, libraries that the target loads are read, its heap is read at the end.
//
//	CAP_BPF, CAP_PERFMON       programs, maps and probes
//	CAP_SYS_PTRACE             /proc/PID of processes of other users, and their memory
//	CAP_DAC_READ_SEARCH        files that only others may read
//	CAP_CHECKPOINT_RESTORE     files that are deleted or replaced, through map_files
//	CAP_KILL                   the end of a command that changed its user
var Tracing = []int{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH,
	unix.CAP_CHECKPOINT_RESTORE, unix.CAP_KILL}

// Keep drops all capabilities but these from all threads, for good. What is not held is not
// gained. A program that uses cgo cannot do it for all threads, and keeps what it has.
func Keep(capabilities ...int) error {
	var held [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &held[0]); err != nil {
		return fmt.Errorf("read the own capabilities: %w", err)
	}
	var kept [2]uint32
	for _, number := range capabilities {
		kept[number/32] |= 1 << (number % 32)
	}
	for i := range held {
		held[i].Effective &= kept[i]
		held[i].Permitted &= kept[i]
		held[i].Inheritable &= kept[i]
	}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&held[0])), 0)
	if errno != 0 && !errors.Is(errno, unix.ENOTSUP) {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}
