package tracer

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// mapArray is the memory of an array map that was made with BPF_F_MMAPABLE: writing a
// million values costs a copy, not a million system calls. T is laid out as the map's value,
// whose size is a multiple of 8.
type mapArray[T any] struct {
	values []T
	memory []byte
}

// openMapArray maps the values of m into memory.
func openMapArray[T any](m *ebpf.Map) (mapArray[T], error) {
	var value T
	if size := unsafe.Sizeof(value); uintptr(m.ValueSize()) != size || size%8 != 0 {
		return mapArray[T]{}, fmt.Errorf("map %s: values of %d bytes, %d expected", m, m.ValueSize(), size)
	}
	page := unix.Getpagesize()
	length := (int(m.MaxEntries())*int(m.ValueSize()) + page - 1) / page * page
	memory, err := unix.Mmap(m.FD(), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return mapArray[T]{}, fmt.Errorf("map the memory of %s: %w", m, err)
	}
	values := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), m.MaxEntries())
	return mapArray[T]{values: values, memory: memory}, nil
}

// close lets go of the memory. It may be called again, and on the zero value.
func (a *mapArray[T]) close() error {
	if a.memory == nil {
		return nil
	}
	err := unix.Munmap(a.memory)
	a.values, a.memory = nil, nil
	return err
}
