package tracer

import (
	"debug/elf"

	"golang.org/x/sys/unix"
)

// machine is what the target's code is for.
const machine = elf.EM_X86_64

// oldRoundCalls are the system calls that newer architectures do without.
var oldRoundCalls = []roundCall{
	{"epoll_wait", unix.SYS_EPOLL_WAIT, milliseconds, 3},
	{"poll", unix.SYS_POLL, milliseconds, 2},
	{"select", unix.SYS_SELECT, timeSpec, 4},
}
