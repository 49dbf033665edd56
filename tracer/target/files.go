package target

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openRoot opens the root directory of the process.
func (t *Target) openRoot() (*os.File, error) {
	return t.openProc("root", unix.O_PATH|unix.O_DIRECTORY)
}

// OpenMapped opens the very file that the process has mapped: the one its path leads to
// beneath its root if that is still the same, else the mapped one through map_files, which
// reaches deleted and replaced files too. The caller closes it.
func (t *Target) OpenMapped(m Mapping) (*os.File, error) {
	if m.Inode == 0 {
		return nil, fmt.Errorf("open %s: no file is mapped there", m.Path)
	}
	direct, err := t.openProc(fmt.Sprintf("map_files/%x-%x", m.Start, m.End), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err == nil {
		return named(direct, m.Path)
	}
	byPath, pathErr := t.OpenBeneath(m.Path)
	if errors.Is(pathErr, os.ErrNotExist) && errors.Is(err, os.ErrPermission) {
		return nil, t.outOfReach(m)
	}
	if pathErr != nil {
		return nil, fmt.Errorf("open %s as process %d maps it: %w", m.Path, t.PID, errors.Join(pathErr, err))
	}
	var stat unix.Stat_t
	if statErr := unix.Fstat(int(byPath.Fd()), &stat); statErr != nil || stat.Ino != m.Inode || m.Deleted {
		byPath.Close()
		return nil, t.outOfReach(m)
	}
	return byPath, nil
}

// outOfReach refuses a file that only map_files leads to.
func (t *Target) outOfReach(m Mapping) error {
	return refuse("run as root, or with CAP_CHECKPOINT_RESTORE",
		"%s was deleted or replaced since process %d mapped it, and the mapped file is out of reach", m.Path, t.PID)
}

// OpenBeneath opens a regular file by the process's own path: absolute, inside its root,
// with links resolved inside that root too. The caller closes it.
func (t *Target) OpenBeneath(path string) (*os.File, error) {
	if t.root == nil {
		return nil, os.ErrClosed
	}
	fd, err := unix.Openat2(int(t.root.Fd()), path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return named(os.NewFile(uintptr(fd), path), path)
}

// named checks that a file is a regular one, so that reading it cannot hang, and names it
// as the target does.
func named(f *os.File, path string) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	f.Close()
	if err != nil {
		return nil, &os.PathError{Op: "dup", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
