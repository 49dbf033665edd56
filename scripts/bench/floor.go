package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"memtrace/tracer/probe"
	"memtrace/tracer/target"
)

// emptyProbes puts a program that does nothing where memtrace puts its own: no probe of the
// same kind can cost less.
func emptyProbes(pid int) (stop func() error, err error) {
	traced, err := target.Open(context.Background(), pid)
	if err != nil {
		return nil, err
	}
	features, err := probe.DetectFeatures()
	if err != nil {
		return nil, errors.Join(err, traced.Close())
	}
	empty, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "empty", Type: ebpf.Kprobe, AttachType: features.AttachType(probe.Entry), License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load an empty program: %w", err), traced.Close())
	}
	file, err := traced.OpenMapped(traced.Allocator.Mapping)
	if err != nil {
		return nil, errors.Join(err, empty.Close(), traced.Close())
	}
	var sites []probe.Site
	for _, entry := range traced.Allocator.Entries {
		sites = append(sites, entry.Site(0))
	}
	links, err := features.Attach(empty, file, sites, pid, probe.Entry)
	close := func() error {
		errs := []error{empty.Close(), file.Close(), traced.Close()}
		if links != nil {
			errs = append(errs, links.Close())
		}
		return errors.Join(errs...)
	}
	if err != nil {
		return nil, errors.Join(err, close())
	}
	return close, nil
}

// libraryOf is the path of the C library that a process has mapped.
func libraryOf(pid int) (string, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return "", fmt.Errorf("read the mappings of the workload: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		if fields := strings.Fields(line); len(fields) == 6 && strings.Contains(fields[5], "libc.so") {
			return fields[5], nil
		}
	}
	return "", fmt.Errorf("process %d has no C library mapped", pid)
}

// waitForProbes waits until a tool says that it is ready, or has changed the code of the
// process: a file may be told apart from what is mapped of it.
func waitForProbes(pid int, ready string) error {
	path, err := libraryOf(pid)
	if err != nil {
		return err
	}
	before, err := codeOf(pid, path)
	if err != nil {
		return err
	}
	const patience = 30 * time.Second
	const settle = 300 * time.Millisecond // a tool puts several probes in
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(ready); err == nil {
			return nil
		}
		now, err := codeOf(pid, path)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, before) {
			time.Sleep(settle)
			return nil
		}
	}
	return fmt.Errorf("no probe within %s", patience)
}

// codeOf reads the code of a library in a process's memory.
func codeOf(pid int, path string) ([]byte, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, fmt.Errorf("read the mappings of the workload: %w", err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, fmt.Errorf("open the memory of the workload: %w", err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var start, end int64
		if !strings.Contains(line, " r-xp ") || !strings.Contains(line, path) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			return nil, fmt.Errorf("read the mappings of the workload: %w", err)
		}
		code := make([]byte, end-start)
		if _, err := memory.ReadAt(code, start); err != nil {
			return nil, fmt.Errorf("read the code of the workload: %w", err)
		}
		return code, nil
	}
	return nil, fmt.Errorf("process %d has no code of %s", pid, path)
}
