package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// privileges lists the capabilities that are used, and what stands in their way.
func (c *checkup) privileges() {
	held, err := effectiveCapabilities()
	if err != nil {
		c.needs("capabilities", false, err.Error(), "mount /proc")
		return
	}
	for _, capability := range []struct {
		number        int
		name          string
		or            int
		required      bool
		allows, costs string
	}{
		{unix.CAP_BPF, "CAP_BPF", unix.CAP_SYS_ADMIN, true, "loading programs", ""},
		{unix.CAP_PERFMON, "CAP_PERFMON", unix.CAP_SYS_ADMIN, true, "attaching probes, reading the kernel's memory", ""},
		{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE, false, "processes of others, and memory of processes", "only own processes can be looked at"},
		{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", unix.CAP_DAC_OVERRIDE, false, "files that only others may read", "files that only others may read cannot be probed or named"},
		{unix.CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", unix.CAP_SYS_ADMIN, false, "deleted and replaced files", "deleted and replaced files cannot be reached"},
	} {
		switch has := held.has(capability.number) || held.has(capability.or); {
		case capability.required:
			c.needs(capability.name, has, capability.allows, "run as root, or with "+capability.name)
		case has:
			c.has(capability.name, "%s", capability.allows)
		default:
			c.lacks(capability.name, capability.costs, "run as root, or with "+capability.name)
		}
	}
	c.namespaces()
	c.ptrace(held)
	c.perfEvents(held)
}

// capabilitySet is a set of capabilities, a bit for each.
type capabilitySet uint64

func (s capabilitySet) has(number int) bool { return s&(1<<number) != 0 }

// effectiveCapabilities reads those that this process has now.
func effectiveCapabilities() (capabilitySet, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the own capabilities: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "CapEff:"); found {
			bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return capabilitySet(bits), err
		}
	}
	return 0, fmt.Errorf("/proc/self/status does not tell the own capabilities")
}

// Inode numbers of the initial namespaces (PROC_USER_INIT_INO, PROC_PID_INIT_INO of
// linux/proc_ns.h): they never change.
const (
	initialUserNamespace = "user:[4026531837]"
	initialPIDNamespace  = "pid:[4026531836]"
)

// namespaces looks whether memtrace itself runs where the kernel counts its privileges and
// process ids.
func (c *checkup) namespaces() {
	user, err := os.Readlink("/proc/self/ns/user")
	c.needs("host's user namespace", err == nil && user == initialUserNamespace, user,
		"capabilities count in the host's user namespace alone: run memtrace there")
	pid, err := os.Readlink("/proc/self/ns/pid")
	c.needs("host's PID namespace", err == nil && pid == initialPIDNamespace, pid,
		"run memtrace in the host's PID namespace (docker run --pid=host, hostPID: true)")
}

// ptrace reads Yama's rule on who may look into whom.
func (c *checkup) ptrace(held capabilitySet) {
	scope := strings.TrimSpace(readText("/proc/sys/kernel/yama/ptrace_scope"))
	switch {
	case scope == "3":
		c.lacks("ptrace", "kernel.yama.ptrace_scope is 3: no heap can be read, no command started", "reboot with kernel.yama.ptrace_scope at most 2")
	case scope != "" && scope != "0" && !held.has(unix.CAP_SYS_PTRACE):
		c.lacks("ptrace", "kernel.yama.ptrace_scope is "+scope+": heaps of running processes cannot be read", "run with CAP_SYS_PTRACE, or sysctl kernel.yama.ptrace_scope=0")
	case scope == "":
		c.has("ptrace", "not restricted")
	default:
		c.has("ptrace", "kernel.yama.ptrace_scope = %s", scope)
	}
}

// perfEvents reads who may use performance events, which single uprobes are.
func (c *checkup) perfEvents(held capabilitySet) {
	paranoid := strings.TrimSpace(readText("/proc/sys/kernel/perf_event_paranoid"))
	if held.has(unix.CAP_PERFMON) || held.has(unix.CAP_SYS_ADMIN) || strings.HasPrefix(paranoid, "-") {
		c.has("perf events", "kernel.perf_event_paranoid = %s", paranoid)
		return
	}
	c.lacks("perf events", "kernel.perf_event_paranoid is "+paranoid, "run with CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1")
}

// readText returns a small file, "" when it cannot be read.
func readText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
