package tracer

import "golang.org/x/sys/unix"

// oldIdleCalls are the idle waits that newer architectures do without.
var oldIdleCalls = []int{unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_PAUSE}
