// Package cgroup reads what the memory controller says about the group of a process, for
// version 1 and version 2 hierarchies, and pressure stall information of host and group.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"memtrace/tracer/recording"
)

// Group is the control group of one process: the memory controller's, and the unified
// hierarchy's for pressure. Either may be missing.
type Group struct {
	memory  string // directory of the memory controller; empty = none
	version int    // 1 or 2
	unified string // directory of the unified hierarchy's group; empty = none
}

// Of finds the group of a process. A machine without control groups yields an empty group,
// whose readings are zero.
func Of(pid int) (Group, error) { return find("/proc", "/", pid) }

// find is Of below other roots, for tests.
func find(proc, root string, pid int) (Group, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return Group{}, fmt.Errorf("read %s: %w", proc, err)
	}
	process, err := fs.Proc(pid)
	if err != nil {
		return Group{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	memberships, err := process.Cgroups()
	if err != nil {
		return Group{}, fmt.Errorf("read the control groups of process %d: %w", pid, err)
	}
	mounts, err := mounts(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return Group{}, err
	}
	var g Group
	for _, m := range memberships {
		for _, mount := range mounts {
			mount.point = filepath.Join(root, mount.point)
			g.consider(m, mount)
		}
	}
	return g, nil
}

// consider takes the group's directory of one membership below one mount.
func (g *Group) consider(m procfs.Cgroup, mount mount) {
	directory, found := mount.directory(m.Path)
	switch {
	case !found:
	case m.HierarchyID == 0 && mount.version == 2:
		g.unified = directory
		if _, err := os.Stat(filepath.Join(directory, "memory.current")); err == nil && g.memory == "" {
			g.memory, g.version = directory, 2
		}
	case mount.version == 1 && contains(m.Controllers, "memory") && contains(mount.options, "memory"):
		g.memory, g.version = directory, 1
	}
}

// mount is one mounted hierarchy.
type mount struct {
	root, point string
	version     int
	options     []string
}

// directory maps a membership's path to a directory below the mount, which may show a part
// of the hierarchy only (a container's view).
func (m mount) directory(path string) (string, bool) {
	if m.root != "/" {
		rest, found := strings.CutPrefix(path, m.root)
		if !found {
			return "", false
		}
		path = rest
	}
	directory := filepath.Join(m.point, path)
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return "", false
	}
	return directory, true
}

// mounts lists the cgroup file systems of a mountinfo file (proc(5)).
func mounts(path string) ([]mount, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("list the mounted control groups: %w", err)
	}
	defer file.Close()
	var found []mount
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		before, after, split := strings.Cut(lines.Text(), " - ")
		fields, kinds := strings.Fields(before), strings.Fields(after)
		if !split || len(fields) < 5 || len(kinds) < 3 {
			continue
		}
		m := mount{root: fields[3], point: fields[4], options: strings.Split(kinds[2], ",")}
		switch kinds[0] {
		case "cgroup":
			m.version = 1
		case "cgroup2":
			m.version = 2
		default:
			continue
		}
		found = append(found, m)
	}
	return found, lines.Err()
}

// Memory reads the group's memory figures. Limits that are not set are 0. A value that the
// kernel does not offer is 0 as well.
func (g Group) Memory() recording.Cgroup {
	if g.memory == "" {
		return recording.Cgroup{}
	}
	if g.version == 1 {
		return recording.Cgroup{
			CurrentBytes: g.value("memory.usage_in_bytes"),
			PeakBytes:    g.value("memory.max_usage_in_bytes"),
			HighBytes:    g.limit("memory.soft_limit_in_bytes"),
			MaxBytes:     g.limit("memory.limit_in_bytes"),
			EventsMax:    g.value("memory.failcnt"),
			EventsOOM:    g.keyed("memory.oom_control", "oom_kill"),
		}
	}
	return recording.Cgroup{
		CurrentBytes: g.value("memory.current"),
		PeakBytes:    g.value("memory.peak"),
		HighBytes:    g.limit("memory.high"),
		MaxBytes:     g.limit("memory.max"),
		EventsHigh:   g.keyed("memory.events", "high"),
		EventsMax:    g.keyed("memory.events", "max"),
		EventsOOM:    g.keyed("memory.events", "oom_kill"),
	}
}

// unlimited is what version 1 reports for "no limit": the largest page-aligned number, or
// anything near it, since page sizes differ.
const unlimited = 1 << 62

// limit reads a limit; "max" and its version 1 likeness are 0.
func (g Group) limit(name string) uint64 {
	value := g.value(name)
	if value >= unlimited {
		return 0
	}
	return value
}

// value reads a file that holds one number.
func (g Group) value(name string) uint64 {
	text, err := os.ReadFile(filepath.Join(g.memory, name))
	if err != nil {
		return 0
	}
	value, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return value
}

// keyed reads one number of a file of "name number" lines.
func (g Group) keyed(name, key string) uint64 {
	text, err := os.ReadFile(filepath.Join(g.memory, name))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] == key {
			value, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return value
		}
	}
	return 0
}

// Pressure reads the group's own pressure, zeros where the kernel keeps none for groups.
func (g Group) Pressure() recording.PSI {
	if g.unified == "" {
		return recording.PSI{}
	}
	return pressure(func(resource string) string { return filepath.Join(g.unified, resource+".pressure") })
}

// HostPressure reads the machine's pressure, zeros where the kernel keeps none.
func HostPressure() recording.PSI {
	return pressure(func(resource string) string { return "/proc/pressure/" + resource })
}

// pressure reads the ten-second averages of the three resources.
func pressure(path func(resource string) string) recording.PSI {
	var psi recording.PSI
	psi.MemorySomeAvg10, psi.MemoryFullAvg10 = averages(path("memory"))
	psi.IOSomeAvg10, psi.IOFullAvg10 = averages(path("io"))
	psi.CPUSomeAvg10, _ = averages(path("cpu"))
	return psi
}

// averages reads avg10 of the "some" and the "full" line.
func averages(path string) (some, full float64) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		digits, found := strings.CutPrefix(fields[1], "avg10=")
		value, err := strconv.ParseFloat(digits, 64)
		if !found || err != nil {
			continue
		}
		switch fields[0] {
		case "some":
			some = value
		case "full":
			full = value
		}
	}
	return some, full
}

// PIDs lists the processes of the group at a path of the unified or a version 1 hierarchy,
// its subgroups included. The path is a directory, or relative to a mounted hierarchy.
func PIDs(path string) ([]int, error) {
	directory, err := locate(path)
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	var pids []int
	err = filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return nil // the group vanished, or holds threads only
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && !seen[pid] {
				seen[pid] = true
				pids = append(pids, pid)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the processes of control group %s: %w", path, err)
	}
	return pids, nil
}

// locate finds the directory of a control group.
func locate(path string) (string, error) {
	mounts, err := mounts("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	candidates := []string{path}
	for _, m := range mounts {
		candidates = append(candidates, filepath.Join(m.point, path))
	}
	for _, candidate := range candidates {
		if _, err := os.Stat(filepath.Join(candidate, "cgroup.procs")); err == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("no control group %s: give a directory that holds cgroup.procs, or its path below a mounted hierarchy (see /proc/PID/cgroup)", path)
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}
