package launch

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxSystemCalls bounds the loader's work: a program that makes more system calls before
// its first allocation than this is held where it is then.
const maxSystemCalls = 1 << 17

// runToLibraries takes the freshly started, traced process to the place where its libraries
// are mapped and none of them has run.
func runToLibraries(ctx context.Context, pid int) error {
	// The first stop is the one after execve.
	if _, err := waitStop(pid); err != nil {
		return err
	}
	if static, err := isStatic(pid); err != nil || static {
		return err
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD); err != nil {
		return fmt.Errorf("ptrace options: %w", err)
	}
	signal := 0
	for range maxSystemCalls {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := unix.PtraceSyscall(pid, signal); err != nil {
			return fmt.Errorf("ptrace: %w", err)
		}
		status, err := waitStop(pid)
		if err != nil {
			return err
		}
		signal = 0
		if status.StopSignal() != unix.SIGTRAP|systemCallStop {
			signal = int(status.StopSignal())
			continue
		}
		sealed, err := sealsLibrary(pid)
		if err != nil || sealed {
			return err
		}
	}
	return nil
}

// systemCallStop marks stops at system calls, with PTRACE_O_TRACESYSGOOD (ptrace(2)).
const systemCallStop = 0x80

// waitStop waits for the process to stop.
func waitStop(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WALL, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return status, fmt.Errorf("wait: %w", err)
		}
		if !status.Stopped() {
			return status, ErrEnded
		}
		return status, nil
	}
}

// isStatic tells whether the process has no dynamic loader.
func isStatic(pid int) (bool, error) {
	file, err := elf.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false, fmt.Errorf("read the program: %w", err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	return true, nil
}

// systemCallInfo is struct ptrace_syscall_info at a system call's entry (linux/ptrace.h).
type systemCallInfo struct {
	op        uint8
	_         [3]uint8
	arch      uint32
	ip        uint64
	sp        uint64
	number    uint64
	arguments [6]uint64
}

const (
	ptraceGetSystemCallInfo = 0x420e // PTRACE_GET_SYSCALL_INFO
	systemCallEntry         = 1      // PTRACE_SYSCALL_INFO_ENTRY
)

// sealsLibrary tells whether the process stands at the entry of the mprotect call that the
// loader makes when everything is mapped.
func sealsLibrary(pid int) (bool, error) {
	var info systemCallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceGetSystemCallInfo, uintptr(pid),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return false, fmt.Errorf("ptrace: which system call: %w", errno)
	}
	const protection = 2
	return info.op == systemCallEntry && info.number == unix.SYS_MPROTECT && info.arguments[protection] == unix.PROT_READ, nil
}
