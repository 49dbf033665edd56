package tracer

import (
	"os"

	"golang.org/x/sys/unix"

	"memtrace/tracer/target"
)

// kernelRelease is what uname -r prints, "" when it cannot be asked.
func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// initialPIDNamespace is PROC_PID_INIT_INO of linux/proc_ns.h, which never changes.
const initialPIDNamespace = "pid:[4026531836]"

// refuseNested refuses to run in a PID namespace other than the host's: the kernel half
// knows processes by the host's numbers, and would wait for one that never comes.
func refuseNested() error {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || own == initialPIDNamespace {
		return nil
	}
	return &target.Refusal{
		Reason: "memtrace runs in a PID namespace of its own",
		Next:   "run it in the host's (docker run --pid=host, hostPID: true); the target may be in any",
	}
}
