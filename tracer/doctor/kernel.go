package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"memtrace/tracer/probe"
)

// kernel tries what the probes are made of.
func (c *checkup) kernel() {
	found, err := probe.DetectFeatures()
	c.bpf(err)
	c.btf()
	c.programs()
	c.uprobes(found)
	c.jit()
	c.lockdown()
	c.tracefs()
}

// bpf says whether a program can be loaded at all.
func (c *checkup) bpf(err error) {
	switch {
	case err == nil:
		c.needs("BPF", true, "programs can be loaded", "")
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		c.needs("BPF", false, "no permission to load a program", "run as root, or with CAP_BPF and CAP_PERFMON")
	case errors.Is(err, unix.ENOSYS):
		c.needs("BPF", false, "the kernel has no bpf system call", "use a kernel with CONFIG_BPF_SYSCALL=y")
	default:
		c.needs("BPF", false, err.Error(), "use a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y")
	}
}

// btf looks for the kernel's description of its own types.
func (c *checkup) btf() {
	const path = "/sys/kernel/btf/vmlinux"
	if _, err := os.Stat(path); err != nil {
		c.needs("BTF", false, "no "+path, "use a kernel with CONFIG_DEBUG_INFO_BTF=y; in a container, mount /sys")
		return
	}
	c.needs("BTF", true, path, "")
}

// programs tries the kinds of programs and maps that not every kernel has.
func (c *checkup) programs() {
	for _, part := range []struct {
		name, since string
		err         error
	}{
		{"per-thread storage", "5.11", features.HaveMapType(ebpf.TaskStorage)},
		{"raw tracepoints", "4.17", features.HaveProgramType(ebpf.RawTracepoint)},
		{"loops in programs", "5.17", features.HaveProgramHelper(ebpf.Kprobe, asm.FnLoop)},
		{"cookies of probes", "5.15", features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie)},
	} {
		switch {
		case part.err == nil:
			c.needs(part.name, true, "the kernel has them", "")
		case errors.Is(part.err, ebpf.ErrNotSupported):
			c.needs(part.name, false, "the kernel lacks them", "use Linux "+part.since+" or later")
		default:
			c.needs(part.name, false, "cannot be tried: "+lastCause(part.err), "run as root, or with CAP_BPF and CAP_PERFMON")
		}
	}
}

// lastCause is the innermost error: the system call's.
func lastCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// uprobes says how probes are put in.
func (c *checkup) uprobes(found probe.Features) {
	const single = "/sys/bus/event_source/devices/uprobe"
	if _, err := os.Stat(single); err != nil && !found.Multi {
		c.needs("uprobes", false, "no "+single, "use a kernel with CONFIG_UPROBE_EVENTS=y; in a container, mount /sys")
		return
	}
	c.needs("uprobes", true, "the kernel has them", "")
	if found.Multi {
		c.has("uprobes in one go", "attached and taken out together")
	} else {
		c.lacks("uprobes in one go", "probes are attached one by one, which takes longer", "Linux 6.6 has them")
	}
	if found.Session {
		c.has("uprobe sessions", "returns are probed for sampled calls alone")
	} else {
		c.lacks("uprobe sessions", "lifetimes and failed calls are seen with --exact alone", "Linux 6.13 has them")
	}
}

// jit looks whether programs are compiled.
func (c *checkup) jit() {
	text, err := os.ReadFile("/proc/sys/net/core/bpf_jit_enable")
	switch value := strings.TrimSpace(string(text)); {
	case err != nil:
		c.has("BPF compiler", "always on, as far as can be seen")
	case value == "0":
		c.lacks("BPF compiler", "programs are interpreted: probes cost several times as much", "sysctl net.core.bpf_jit_enable=1")
	default:
		c.has("BPF compiler", "net.core.bpf_jit_enable = %s", value)
	}
}

// lockdown looks whether the kernel keeps its memory from being read, which probes need.
func (c *checkup) lockdown() {
	text, err := os.ReadFile("/sys/kernel/security/lockdown")
	if err != nil {
		c.needs("no lockdown", true, "not in use", "")
		return
	}
	mode := "none"
	if _, rest, found := strings.Cut(string(text), "["); found {
		mode, _, _ = strings.Cut(rest, "]")
	}
	c.needs("no lockdown", mode != "confidentiality", fmt.Sprintf("lockdown is %q", mode),
		"boot with lockdown=integrity, or without Secure Boot's lockdown")
}

// tracefs looks where the kernel lists its tracepoints.
func (c *checkup) tracefs() {
	for _, path := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		if _, err := os.Stat(path + "/events"); err == nil {
			c.has("tracefs", "%s: futex calls are seen through it", path)
			return
		}
	}
	c.lacks("tracefs", "not mounted, or not readable: no locks are seen without it", "as root: mount -t tracefs tracefs /sys/kernel/tracing")
}
