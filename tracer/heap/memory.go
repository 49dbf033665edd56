package heap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Memory reads another process's memory. Read fills into from address on, wholly or not
// at all; ErrGone means that the process is no more.
type Memory interface {
	Read(address uint64, into []byte) error
}

// ErrGone tells that the process ended while it was read.
var ErrGone = errors.New("the process ended while its heap was read")

// processMemory reads through process_vm_readv: no stop, no ptrace attachment.
type processMemory int

// Read copies len(into) bytes from the target's address.
func (pid processMemory) Read(address uint64, into []byte) error {
	if len(into) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}
	n, err := unix.ProcessVMReadv(int(pid), local, remote, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return ErrGone
	case err != nil:
		return fmt.Errorf("read %d bytes at %#x: %w", len(into), address, err)
	case n != len(into):
		return fmt.Errorf("read %d bytes at %#x: only %d are mapped", len(into), address, n)
	}
	return nil
}

// bounded is memory that can be read until its context ends, so that no list, however
// broken, holds a walk longer than its caller allows.
type bounded struct {
	ctx context.Context
	Memory
}

// Read is Memory.Read, or the context's error.
func (b bounded) Read(address uint64, into []byte) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	return b.Memory.Read(address, into)
}

// walkWindow is how much one read of a heap brings in. Walking costs this much memory,
// however large the heap.
const walkWindow = 256 << 10

// window is a view of memory through a buffer that moves with the reader. Reads stop at
// pages that are not resident: to touch them would fault zero or swapped pages in.
type window struct {
	memory   Memory
	resident *residency
	buffer   []byte
	start    uint64
	length   uint64
}

func newWindow(memory Memory, resident *residency) *window {
	return &window{memory: memory, resident: resident, buffer: make([]byte, walkWindow)}
}

// at returns n bytes at address, valid until the next call. Limit is the end of the
// region: no read goes past it.
func (w *window) at(address uint64, n int, limit uint64) ([]byte, error) {
	need := uint64(n)
	if address >= w.start && address-w.start <= w.length && w.length-(address-w.start) >= need {
		offset := address - w.start
		return w.buffer[offset : offset+need], nil
	}
	if address+need > limit || address+need < address {
		return nil, fmt.Errorf("%#x lies beyond its heap, which ends at %#x", address, limit)
	}
	length := min(limit-address, uint64(len(w.buffer)))
	length = max(need, w.resident.run(address, length))
	w.length = 0
	if err := w.memory.Read(address, w.buffer[:length]); err != nil {
		return nil, err
	}
	w.start, w.length = address, length
	return w.buffer[:need], nil
}

// pageView reads chunks that lists lead to, anywhere in memory, a page at a time: chunks
// freed one after another mostly share pages, in whichever order.
type pageView struct {
	memory Memory
	start  uint64
	full   bool
	buffer [4096]byte
	apart  [minChunk]byte
}

// at returns the first words of the chunk at address, valid until the next call.
func (v *pageView) at(address uint64) ([]byte, error) {
	page := address &^ uint64(len(v.buffer)-1)
	offset := address - page
	if offset+minChunk > uint64(len(v.buffer)) {
		err := v.memory.Read(address, v.apart[:])
		return v.apart[:], err
	}
	if !v.full || page != v.start {
		v.full = false
		if err := v.memory.Read(page, v.buffer[:]); err != nil {
			return nil, err
		}
		v.start, v.full = page, true
	}
	return v.buffer[offset : offset+minChunk], nil
}

// word reads one pointer-sized value.
func word(memory Memory, address uint64) (uint64, error) {
	var raw [8]byte
	if err := memory.Read(address, raw[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(raw[:]), nil
}
