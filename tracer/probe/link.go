package probe

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// descriptor is a link's file descriptor; closing it takes the probes out.
type descriptor struct {
	mutex sync.Mutex
	fd    int
}

// Close takes the link's probes out of the target.
func (d *descriptor) Close() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.fd < 0 {
		return nil
	}
	fd := d.fd
	d.fd = -1
	return unix.Close(fd)
}

// linkCreate calls BPF_LINK_CREATE.
func linkCreate(request *multiRequest) (*descriptor, error) {
	for {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, bpfLinkCreate, uintptr(unsafe.Pointer(request)), unsafe.Sizeof(*request))
		switch errno {
		case 0:
			return &descriptor{fd: int(fd)}, nil
		case unix.EINTR:
			continue
		}
		return nil, errno
	}
}
