package tracer

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"memtrace/bpf"
	"memtrace/symbolize"
)

// firstSlot is the first slot that one thread has for itself: see bpf/thread.h.
const firstSlot = 2

// usedSlots returns the number of thread slots that may hold figures: the slots 0 to
// usedSlots-1.
func (k *kernel) usedSlots() (uint32, error) {
	var count uint64
	if err := k.maps.ThreadCount.Lookup(bpf.SharedThreadCountsTHREADS_SEEN, &count); err != nil {
		return 0, fmt.Errorf("read the number of threads: %w", err)
	}
	return uint32(min(count+firstSlot, uint64(k.threadSlots()))), nil
}

// executed tells whether the target has become another program.
func (k *kernel) executed() (bool, error) {
	var count uint64
	if err := k.maps.ThreadCount.Lookup(bpf.SharedThreadCountsPROGRAMS_EXECUTED, &count); err != nil {
		return false, fmt.Errorf("read whether the target executed another program: %w", err)
	}
	return count > 0, nil
}

// isLoss tells whether a counter of the kernel half counts something that was lost.
func isLoss(kind int) bool { return kind < int(bpf.SharedLossSTACKS_TAKEN) }

// stack reads a stored stack.
func (k *kernel) stack(id uint64) (symbolize.Stack, error) {
	var stored bpf.SharedStack
	if err := k.maps.Stacks.Lookup(id, &stored); err != nil {
		return symbolize.Stack{}, fmt.Errorf("read stack %x: %w", id, err)
	}
	depth := min(int(stored.Depth), len(stored.Addresses))
	return symbolize.Stack{
		Addresses: stored.Addresses[:depth],
		Returning: stored.Flags&bpf.SharedStackFlagsSTACK_RETURNING != 0,
	}, nil
}

// readSlots reads the first count values of an array map in one go.
func readSlots[V any](m *ebpf.Map, count uint32) ([]V, error) {
	keys, values := make([]uint32, count), make([]V, count)
	var cursor ebpf.MapBatchCursor
	read, err := m.BatchLookup(&cursor, keys, values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("read the figures of %d threads: %w", count, err)
	}
	return values[:read], nil
}

// readAll reads a hash map while programs write to it: entries that come or go meanwhile
// may be missed, none is read twice.
func readAll[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	const batch = 1024
	all := map[K]V{}
	var cursor ebpf.MapBatchCursor
	keys, values := make([]K, batch), make([]V, batch)
	for {
		read, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range read {
			all[keys[i]] = values[i]
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a map of the probes: %w", err)
		}
	}
}
