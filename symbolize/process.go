package symbolize

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	maxStatus = 64 << 10 // bytes of /proc/PID/status
	maxVDSO   = 1 << 20  // bytes of the vdso's image
)

// ErrExited says that the process has gone. What was learned about it before stays usable.
var ErrExited = errors.New("the process has exited")

// process is the target as /proc shows it. Its directories are held open: they go on meaning
// this process, or nothing, when its number is given to another one.
type process struct {
	pid  int
	dir  int // /proc/PID
	root int // /proc/PID/root: all paths of the target begin there; -1 if not accessible
}

// openProcess takes hold of a live process.
func openProcess(pid int) (*process, error) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	root, err := unix.Openat(dir, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		root = -1
	}
	return &process{pid: pid, dir: dir, root: root}, nil
}

func (p *process) close() {
	_ = unix.Close(p.dir)
	if p.root >= 0 {
		_ = unix.Close(p.root)
	}
}

// entry opens a file of the process's /proc directory.
func (p *process) entry(name string) (*os.File, error) {
	fd, err := unix.Openat(p.dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
			err = ErrExited
		}
		return nil, fmt.Errorf("/proc/%d/%s: %w", p.pid, name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// mappings reads the process's mappings. Those of a process whose first thread has ended
// are only shown by the threads that are left.
func (p *process) mappings() ([]Mapping, error) {
	mappings, err := p.mappingsOf("maps")
	if err != nil || len(mappings) > 0 {
		return mappings, err
	}
	tasks, err := p.entry("task")
	if err != nil {
		return nil, err
	}
	defer tasks.Close()
	threads, _ := tasks.Readdirnames(-1)
	for _, thread := range threads {
		mappings, err := p.mappingsOf("task/" + thread + "/maps")
		if err == nil && len(mappings) > 0 {
			return mappings, nil
		}
	}
	return nil, fmt.Errorf("process %d: %w", p.pid, ErrExited)
}

func (p *process) mappingsOf(name string) ([]Mapping, error) {
	file, err := p.entry(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	mappings, err := ParseMaps(file)
	if errors.Is(err, unix.ESRCH) {
		err = ErrExited
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", p.pid, err)
	}
	return mappings, nil
}

// open opens a regular file by its path below the target's own root directory, from which
// no link leads out.
func (p *process) open(path string) (*os.File, error) {
	return p.openBeneath(path, 0)
}

// openBeneath is open with further flags of open(2), such as O_NOFOLLOW.
func (p *process) openBeneath(path string, flags uint64) (*os.File, error) {
	if p.root < 0 {
		return nil, fmt.Errorf("open %s: the root directory of process %d is not accessible", path, p.pid)
	}
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(p.root, path, &how)
	if err != nil {
		return nil, fmt.Errorf("open %s in the root of process %d: %w", path, p.pid, err)
	}
	defer unix.Close(fd)
	return reopen(fd, path)
}

// reopen opens for reading what an O_PATH descriptor refers to, if that is a regular file:
// opening a device or a pipe can have effects of its own.
func reopen(fd int, path string) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	file, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(fd), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return file, nil
}

// openMapping opens the very file that a mapping shows: by its path if device and inode
// agree, else (deleted, replaced, outside the root) through the kernel's own link to it. That
// takes a privilege; without it, and where a file system counts devices or inodes in two
// ways, the file at the path will do if its code is what the process has in memory.
func (p *process) openMapping(m Mapping) (*os.File, error) {
	file, err := p.open(m.Path)
	if err == nil && shows(file, m) {
		return file, nil
	}
	linked, linkErr := p.openLink(m)
	if linkErr == nil || err != nil {
		if err == nil {
			file.Close()
		}
		return linked, linkErr
	}
	if !p.sameCode(file, m) {
		file.Close()
		return nil, linkErr
	}
	return file, nil
}

// openLink opens the file of a mapping through the kernel's link in map_files.
func (p *process) openLink(m Mapping) (*os.File, error) {
	name := fmt.Sprintf("map_files/%x-%x", m.Start, m.End)
	fd, err := unix.Openat(p.dir, name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s, which process %d has mapped: %w", m.Path, p.pid, err)
	}
	defer unix.Close(fd)
	return reopen(fd, m.Path)
}

// shows says whether the file is the one that the mapping shows.
func shows(file *os.File, m Mapping) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Dev == m.Dev && stat.Ino == m.Inode
}

// sameCode compares the file with the process's memory. A few bytes may differ: breakpoints
// and probes are written there.
func (p *process) sameCode(file *os.File, m Mapping) bool {
	const compared, probes = 64 << 10, 64
	m.End = min(m.End, m.Start+compared)
	memory, err := p.memory(m, compared)
	if err != nil || m.Deleted {
		return false
	}
	code := make([]byte, len(memory))
	n, err := file.ReadAt(code, int64(m.Offset))
	if n == 0 || (err != nil && err != io.EOF) {
		return false
	}
	differences := 0
	for i := range n {
		if code[i] != memory[i] {
			differences++
		}
	}
	return differences <= min(probes, n/64)
}

// debugFiles opens separate debug files: those in the target's root first, then this
// machine's, whose build id has to agree as well.
func (p *process) debugFiles(path string) *os.File {
	if file, err := p.open(filepath.Clean(path)); err == nil {
		return file
	}
	return hostDebugFiles(path)
}

// memory copies a mapping out of the process.
func (p *process) memory(m Mapping, limit uint64) ([]byte, error) {
	if m.End-m.Start > limit {
		return nil, fmt.Errorf("mapping %s: %w", m.Path, errLimit)
	}
	file, err := p.entry("mem")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, m.End-m.Start)
	if _, err := file.ReadAt(data, int64(m.Start)); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s of process %d: %w", m.Path, p.pid, err)
	}
	return data, nil
}

// status returns the effective user and the process's number in its own PID namespace.
func (p *process) status() (uid uint32, inner int, err error) {
	file, err := p.entry("status")
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxStatus))
	if err != nil {
		return 0, 0, fmt.Errorf("status of process %d: %w", p.pid, err)
	}
	inner = p.pid // kernels without PID namespaces have no NSpid
	haveUID := false
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
		key, value, _ := strings.Cut(scanner.Text(), ":")
		fields := strings.Fields(value)
		switch {
		case key == "Uid" && len(fields) == 4:
			effective, err := strconv.ParseUint(fields[1], 10, 32)
			uid, haveUID = uint32(effective), err == nil
		case key == "NSpid" && len(fields) > 0:
			if n, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
				inner = n
			}
		}
	}
	if !haveUID {
		return 0, 0, fmt.Errorf("status of process %d: no user", p.pid)
	}
	return uid, inner, nil
}
