package probe

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Site is one place in a file that gets a probe.
type Site struct {
	Offset uint64 // in the file, bytes
	Cookie uint64 // what bpf_get_attach_cookie returns there
	// Semaphore is where in the file a counter lies that the kernel raises while the probe is
	// in; 0 = none.
	Semaphore uint64
}

// Links holds probes that are in a target. Close takes them out; nothing of them remains in
// the target then, nor when this process dies.
type Links struct{ links []io.Closer }

// Close takes the probes out. It may be called again.
func (l *Links) Close() error {
	var errs []error
	for _, one := range l.links {
		errs = append(errs, one.Close())
	}
	l.links = nil
	return errors.Join(errs...)
}

// Attach puts probes into file, as far as the process pid maps it: in all its threads, and
// in mappings it makes later. The file is named by an open descriptor, because its path may
// lead elsewhere by now (another root, a deleted file). The program must have been loaded
// with the AttachType that f gives for kind.
func (f Features) Attach(program *ebpf.Program, file *os.File, sites []Site, pid int, kind Kind) (*Links, error) {
	if len(sites) == 0 {
		return &Links{}, nil
	}
	path := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	if !f.Multi {
		return attachSingly(program, path, file.Name(), sites, pid, kind)
	}
	flags := uint32(0)
	if kind == Return {
		flags = multiFlagReturn
	}
	one, err := createLink(program, path, sites, uint32(pid), f.AttachType(kind), flags)
	if err != nil {
		return nil, attachError(file.Name(), pid, err)
	}
	return &Links{links: []io.Closer{one}}, nil
}

// attachSingly makes one perf event for each site, for kernels without multi-uprobe links.
func attachSingly(program *ebpf.Program, path, name string, sites []Site, pid int, kind Kind) (*Links, error) {
	if kind == Session {
		return nil, fmt.Errorf("attach to %s: this kernel has no uprobe sessions", name)
	}
	executable, err := link.OpenExecutable(path)
	if err != nil {
		return nil, attachError(name, pid, err)
	}
	attach := executable.Uprobe
	if kind == Return {
		attach = executable.Uretprobe
	}
	links := &Links{}
	for _, site := range sites {
		one, err := attach("memtrace", program, &link.UprobeOptions{Address: site.Offset, PID: pid, Cookie: site.Cookie, RefCtrOffset: site.Semaphore})
		if err != nil {
			return nil, errors.Join(attachError(name, pid, err), links.Close())
		}
		links.links = append(links.links, one)
	}
	return links, nil
}

// attachError says what to do about the refusals that users meet.
func attachError(name string, pid int, err error) error {
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("attach to %s: process %d is gone: %w", name, pid, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("attach to %s: %w; run as root, or with CAP_BPF and CAP_PERFMON", name, err)
	}
	return fmt.Errorf("attach to %s: %w", name, err)
}
