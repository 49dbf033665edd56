// Command init is the first process of the virtual machine that the kernel tests run in: it
// mounts what they need, runs the test programs that /tests lists, prints a verdict and
// powers the machine off.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// testTimeout bounds one test program; the machine is emulated and slow.
const testTimeout = 8 * time.Minute

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "init: this is the first process of a virtual machine; run make test-vm")
		os.Exit(2)
	}
	err := run()
	if err != nil {
		fmt.Println("init:", err)
		fmt.Println("verdict: FAIL")
	} else {
		fmt.Println("verdict: pass")
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// mounts are what the tests and memtrace look into.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"},
	{"tracefs", "/sys/kernel/tracing"}, {"bpf", "/sys/fs/bpf"},
}

// run mounts, and runs all tests; the error says what failed.
func run() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if err := loopback(); err != nil {
		return err
	}
	list, err := os.ReadFile("/tests")
	if err != nil {
		return err
	}
	var failed []string
	for line := range strings.Lines(string(list)) {
		program, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := test(program, pattern); err != nil {
			fmt.Printf("init: %s: %v\n", program, err)
			failed = append(failed, filepath.Base(program))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// loopback brings the machine's only network interface up.
func loopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// test runs the tests of one program whose names match the pattern. None is a failure.
func test(program, pattern string) error {
	fmt.Printf("init: %s %s\n", program, pattern)
	var seen bytes.Buffer
	command := exec.Command(program, "-test.v", "-test.run", pattern, "-test.timeout", testTimeout.String())
	command.Dir = "/tmp"
	command.Env = []string{"PATH=/bin", "HOME=/tmp", "MEMTRACE_TEST_WORKLOADS=/workloads"}
	pipe, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Println(lines.Text())
		seen.WriteString(lines.Text() + "\n")
	}
	if err := command.Wait(); err != nil {
		return err
	}
	if !strings.Contains(seen.String(), "--- PASS") {
		return fmt.Errorf("no test ran")
	}
	return nil
}
