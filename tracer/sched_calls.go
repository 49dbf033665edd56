package tracer

import (
	"golang.org/x/sys/unix"

	"memtrace/bpf"
)

// futexCalls are the system calls in which threads wait for each other.
var futexCalls = []int{unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, unix.SYS_FUTEX_WAIT, unix.SYS_FUTEX_REQUEUE}

// idleCalls are the system calls in which threads wait for work or until some time, on every
// architecture; oldIdleCalls those that only the older ones have. What receives from a
// socket is among them: a thread for each connection waits there.
var idleCalls = append([]int{
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_PPOLL, unix.SYS_PSELECT6,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_GETEVENTS, unix.SYS_IO_PGETEVENTS,
	unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_MQ_TIMEDRECEIVE, unix.SYS_MSGRCV,
	unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_WAIT4, unix.SYS_WAITID,
}, oldIdleCalls...)

// sleepOfSyscall makes the table that tells the kernel half what a thread sleeps for.
func sleepOfSyscall() []uint8 {
	table := make([]uint8, maxSyscall)
	for i := range table {
		table[i] = uint8(bpf.SchedSchedSleepSLEEP_OTHER)
	}
	for _, number := range idleCalls {
		table[number] = uint8(bpf.SchedSchedSleepSLEEP_IDLE)
	}
	for _, number := range futexCalls {
		table[number] = uint8(bpf.SchedSchedSleepSLEEP_FUTEX)
	}
	return table
}

// maxSyscall is MAX_SYSCALL of bpf/sched.bpf.c.
const maxSyscall = 512
