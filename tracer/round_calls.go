package tracer

import (
	"memtrace/bpf"

	"golang.org/x/sys/unix"
)

// roundCall is a system call that means something to rounds: an idle wait, or a call that
// carries something out of the process.
type roundCall struct {
	name     string
	number   int
	kind     bpf.RoundSyscallKind
	argument uint8 // which one counts, from 0
}

const (
	sleeps        = bpf.RoundSyscallKindSYSCALL_SLEEPS
	milliseconds  = bpf.RoundSyscallKindSYSCALL_MILLISECONDS
	timeSpec      = bpf.RoundSyscallKindSYSCALL_TIMESPEC
	maySleep      = bpf.RoundSyscallKindSYSCALL_MAY_SLEEP
	sends         = bpf.RoundSyscallKindSYSCALL_SENDS
	writes        = bpf.RoundSyscallKindSYSCALL_WRITES
	writesVector  = bpf.RoundSyscallKindSYSCALL_WRITES_VECTOR
	writesMessage = bpf.RoundSyscallKindSYSCALL_WRITES_MESSAGE
)

// roundCalls are the calls that every architecture has; oldRoundCalls those that only the
// older ones have. A call that receives counts as an idle wait if the thread slept in it:
// a thread for each connection waits there.
var roundCalls = append([]roundCall{
	{"epoll_pwait", unix.SYS_EPOLL_PWAIT, milliseconds, 3},
	{"epoll_pwait2", unix.SYS_EPOLL_PWAIT2, timeSpec, 3},
	{"ppoll", unix.SYS_PPOLL, timeSpec, 2},
	{"pselect6", unix.SYS_PSELECT6, timeSpec, 4},
	{"nanosleep", unix.SYS_NANOSLEEP, sleeps, 0},
	{"clock_nanosleep", unix.SYS_CLOCK_NANOSLEEP, sleeps, 0},
	{"futex", unix.SYS_FUTEX, bpf.RoundSyscallKindSYSCALL_FUTEX, 0},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, bpf.RoundSyscallKindSYSCALL_RING, 0},
	{"io_getevents", unix.SYS_IO_GETEVENTS, timeSpec, 4},
	{"io_pgetevents", unix.SYS_IO_PGETEVENTS, timeSpec, 4},
	{"rt_sigtimedwait", unix.SYS_RT_SIGTIMEDWAIT, timeSpec, 2},
	{"accept", unix.SYS_ACCEPT, maySleep, 0},
	{"accept4", unix.SYS_ACCEPT4, maySleep, 0},
	{"recvfrom", unix.SYS_RECVFROM, maySleep, 0},
	{"recvmsg", unix.SYS_RECVMSG, maySleep, 0},
	{"recvmmsg", unix.SYS_RECVMMSG, maySleep, 0},
	{"mq_timedreceive", unix.SYS_MQ_TIMEDRECEIVE, maySleep, 0},
	{"msgrcv", unix.SYS_MSGRCV, maySleep, 0},
	{"write", unix.SYS_WRITE, writes, 0},
	{"pwrite64", unix.SYS_PWRITE64, writes, 0},
	{"sendto", unix.SYS_SENDTO, writes, 0},
	{"writev", unix.SYS_WRITEV, writesVector, 0},
	{"pwritev", unix.SYS_PWRITEV, writesVector, 0},
	{"pwritev2", unix.SYS_PWRITEV2, writesVector, 0},
	{"sendmsg", unix.SYS_SENDMSG, writesMessage, 0},
	{"sendmmsg", unix.SYS_SENDMMSG, sends, 0},
	{"sendfile", unix.SYS_SENDFILE, sends, 0},
	{"splice", unix.SYS_SPLICE, sends, 0},
	{"mq_timedsend", unix.SYS_MQ_TIMEDSEND, sends, 0},
	{"msgsnd", unix.SYS_MSGSND, sends, 0},
}, oldRoundCalls...)

// syscallKinds makes the table that the kernel half looks system calls up in.
func syscallKinds() (table [512]uint8) {
	const argumentShift = 4 // SYSCALL_KIND_BITS of bpf/round.h
	for _, call := range roundCalls {
		table[call.number] = uint8(call.kind) | call.argument<<argumentShift
	}
	return table
}

// roundCallName names the system call that separates rounds.
func roundCallName(number uint32) string {
	for _, call := range roundCalls {
		if call.number == int(number) {
			return call.name
		}
	}
	return ""
}
