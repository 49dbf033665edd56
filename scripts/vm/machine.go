// Package vm boots kernels other than this machine's in emulated machines, and runs the
// kernel tests there: the same tests as here, built beforehand.
package vm

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Machine is a kind of machine that kernel tests run in.
type Machine struct {
	Name    string // for people
	Arch    string // as Go calls it
	Release string // of Debian, that the kernel is from
	Kernel  string // its package; +NAME is the one that NAME depends on
	// GCC compiles the workloads, Sysroot is where their C library lies on this machine.
	GCC, Sysroot string
	// Loader and Libraries are what dynamic programs need, as the machine has them.
	Loader    string
	Libraries []string
	QEMU      []string // the emulator and the machine's parts
	Console   string
}

// Machines are all kinds that are tested.
var Machines = []Machine{
	x86("bookworm"),
	x86("trixie"),
	arm64("bookworm"),
}

// arm64 is an arm64 machine with the kernel of a Debian release.
func arm64(release string) Machine {
	return Machine{
		Name: "arm64-" + release, Arch: "arm64", Release: release, Kernel: "+linux-image-cloud-arm64",
		GCC: "aarch64-linux-gnu-gcc", Sysroot: "/usr/aarch64-linux-gnu",
		Loader:    "/lib/ld-linux-aarch64.so.1",
		Libraries: []string{"/lib/libc.so.6"},
		QEMU:      []string{"qemu-system-aarch64", "-accel", accelerator, "-M", "virt", "-cpu", "cortex-a72"},
		Console:   "ttyAMA0",
	}
}

// accelerator emulates the processors in turns. Side by side they can run into code that the
// kernel is just changing, as it does when a tracepoint is attached to ("Oops: int3").
const accelerator = "tcg,thread=single"

// x86 is an x86-64 machine with the kernel of a Debian release.
func x86(release string) Machine {
	return Machine{
		Name: "amd64-" + release, Arch: "amd64", Release: release, Kernel: "+linux-image-cloud-amd64", GCC: "gcc",
		Loader:    "/lib64/ld-linux-x86-64.so.2",
		Libraries: []string{"/lib/x86_64-linux-gnu/libc.so.6"},
		QEMU:      []string{"qemu-system-x86_64", "-accel", accelerator, "-cpu", "max"},
		Console:   "ttyS0",
	}
}

// verdict is what the machine's first process prints at the end when all is well.
const verdict = "verdict: pass"

// Boot runs a kernel with an initial file system until the machine powers off. It returns
// all that the console said; the error tells that the verdict is missing.
func (m Machine) Boot(ctx context.Context, kernel, initrd string) (string, error) {
	arguments := append(m.QEMU[1:len(m.QEMU):len(m.QEMU)],
		"-m", "1G", "-smp", "2", "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", kernel, "-initrd", initrd, "-append", "console="+m.Console+" panic=-1 quiet mitigations=off")
	command := exec.CommandContext(ctx, m.QEMU[0], arguments...)
	var problems bytes.Buffer
	command.Stderr = &problems
	console, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("start the emulator (package qemu-system-x86 or qemu-system-arm): %w", err)
	}
	var said strings.Builder
	passed := false
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		said.WriteString(line + "\n")
		passed = passed || line == verdict
	}
	err = command.Wait()
	switch {
	case ctx.Err() != nil:
		return said.String(), fmt.Errorf("no verdict in time: %w", ctx.Err())
	case !passed:
		return said.String(), fmt.Errorf("no %q on the console (emulator: %v) %s", verdict, err, problems.String())
	}
	return said.String(), nil
}

// FetchKernel returns the path of the machine's kernel, fetched if need be.
func (m Machine) FetchKernel(ctx context.Context, scripts string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(scripts, "fetch-packages"), m.Release, m.Kernel)
	command.Env = append(os.Environ(), "ARCH="+m.Arch)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("fetch the kernel of %s (a Debian mirror is needed once): %w\n%s", m.Release, err, problems.String())
	}
	found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("the package of %s holds %d kernels", m.Release, len(found))
	}
	return found[0], nil
}
