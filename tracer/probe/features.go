package probe

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Kind is when a probe's program runs.
type Kind uint8

const (
	// Entry runs the program before the instruction under the probe.
	Entry Kind = iota
	// Return runs it when the function that was entered returns.
	Return
	// Session runs one program at the entry and, if it returned 0 there, at the return as
	// well (bpf_session_is_return tells which).
	Session
)

// AttachUprobeSession is BPF_TRACE_UPROBE_SESSION of linux/bpf.h.
const AttachUprobeSession = ebpf.AttachType(57)

// Features is how this kernel lets probes be attached, found by trying.
type Features struct {
	// Multi: one link holds any number of probes, filtered by process (Linux 6.6 and its
	// stable updates; the first versions filtered by thread and count as lacking it).
	Multi bool
	// Session: a link whose entry program decides whether the return is probed (Linux 6.13).
	Session bool
}

// AttachType is what a program's specification must carry before it is loaded, for it to be
// attached as kind.
func (f Features) AttachType(kind Kind) ebpf.AttachType {
	switch {
	case kind == Session:
		return AttachUprobeSession
	case f.Multi:
		return ebpf.AttachTraceUprobeMulti
	}
	return ebpf.AttachNone
}

// DetectFeatures asks the kernel. It attaches nothing: every request is one that a kernel
// with the feature refuses for another reason than one without.
func DetectFeatures() (Features, error) {
	var f Features
	multi, err := refusal(ebpf.AttachTraceUprobeMulti, 0)
	if err != nil {
		return f, err
	}
	if !errors.Is(multi, unix.EBADF) {
		return f, nil
	}
	// A kernel that filters by thread looks the process up and says ESRCH.
	byProcess, err := refusal(ebpf.AttachTraceUprobeMulti, ^uint32(0))
	if err != nil {
		return f, err
	}
	f.Multi = errors.Is(byProcess, unix.EINVAL)
	session, err := refusal(AttachUprobeSession, 0)
	if err != nil {
		// A kernel that does not know the attach type may refuse the program already.
		return f, nil
	}
	f.Session = f.Multi && errors.Is(session, unix.EBADF)
	return f, nil
}

// refusal is what the kernel answers to a link on the root directory, which is no file:
// EBADF where the kind of link is known.
func refusal(attach ebpf.AttachType, pid uint32) (refused, err error) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "memtrace_probe", Type: ebpf.Kprobe, AttachType: attach, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return nil, fmt.Errorf("load an empty program: %w", err)
	}
	defer program.Close()
	link, refused := createLink(program, "/", []Site{{Offset: 0}}, pid, attach, 0)
	if refused == nil {
		link.Close()
	}
	return refused, nil
}

// multiRequest is the part of union bpf_attr that BPF_LINK_CREATE reads for a multi-uprobe.
type multiRequest struct {
	programFD  uint32
	targetFD   uint32
	attachType uint32
	flags      uint32
	path       uint64
	offsets    uint64
	references uint64
	cookies    uint64
	count      uint32
	multiFlags uint32
	pid        uint32
	_          uint32
}

const (
	bpfLinkCreate   = 28 // BPF_LINK_CREATE of linux/bpf.h
	multiFlagReturn = 1  // BPF_F_UPROBE_MULTI_RETURN
)

// createLink makes a multi-uprobe link. cilium/ebpf has a wrapper for the plain kind only,
// and looks every path up itself first.
func createLink(program *ebpf.Program, path string, sites []Site, pid uint32, attach ebpf.AttachType, flags uint32) (*descriptor, error) {
	offsets, cookies, semaphores := make([]uint64, len(sites)), make([]uint64, len(sites)), make([]uint64, len(sites))
	for i, site := range sites {
		offsets[i], cookies[i], semaphores[i] = site.Offset, site.Cookie, site.Semaphore
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	// The kernel follows plain numbers: what they point at must stay where it is.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinned := func(p unsafe.Pointer) uint64 {
		pinner.Pin(p)
		return uint64(uintptr(p))
	}
	return linkCreate(&multiRequest{
		programFD:  uint32(program.FD()),
		attachType: uint32(attach),
		path:       pinned(unsafe.Pointer(name)),
		offsets:    pinned(unsafe.Pointer(unsafe.SliceData(offsets))),
		references: pinned(unsafe.Pointer(unsafe.SliceData(semaphores))),
		cookies:    pinned(unsafe.Pointer(unsafe.SliceData(cookies))),
		count:      uint32(len(sites)),
		multiFlags: flags,
		pid:        pid,
	})
}
