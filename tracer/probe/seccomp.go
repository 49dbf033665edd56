package probe

import (
	"fmt"
	"runtime"
)

// ReturnsSafe tells whether a return probe may be put into a process with that Seccomp mode
// (/proc/PID/status: 0 none, 1 strict, 2 filter) on a kernel of that release. From Linux 6.11
// on x86-64 a probed function returns through a system call of its own (uretprobe), which
// filters know nothing of and may kill for; from 6.14 on filters do not see it. Stable
// kernels in between may have the repair; they are treated as if they had not.
func ReturnsSafe(release string, seccompMode int) bool {
	if seccompMode == 0 || runtime.GOARCH != "amd64" {
		return true
	}
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return false
	}
	version := major*1000 + minor
	return version < 6011 || version >= 6014
}
