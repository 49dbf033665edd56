package tracer

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"memtrace/bpf"
)

// liveBlocks is what a site's followed blocks that were not released stand for.
type liveBlocks struct {
	blocks uint64 // a weight
	bytes  uint64
}

// live sums the followed blocks by site.
func (f *allocFamily) live() (map[uint64]liveBlocks, error) {
	blocks, err := readAll[uint64, bpf.AllocAllocBlock](f.objects.AllocBlocks)
	if err != nil {
		return nil, err
	}
	sums := map[uint64]liveBlocks{}
	for _, block := range blocks {
		sum := sums[block.Site]
		sum.blocks += block.Weight
		sum.bytes += scaled(block.Size, block.Weight)
		sums[block.Site] = sum
	}
	return sums, nil
}

// forgetBlocks stops following all blocks.
func (f *allocFamily) forgetBlocks() error {
	blocks, err := readAll[uint64, bpf.AllocAllocBlock](f.objects.AllocBlocks)
	if err != nil {
		return err
	}
	for address := range blocks {
		if err := f.objects.AllocBlocks.Delete(address); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget the followed blocks: %w", err)
		}
	}
	return nil
}

// weightShift and weightOne are WEIGHT_SHIFT and WEIGHT_ONE of bpf/alloc.h.
const (
	weightShift = 16
	weightOne   = 1 << weightShift
)

// scaled is what the bytes of a call of this weight stand for, as in bpf/alloc_site.h.
func scaled(size, weight uint64) uint64 {
	if weight == weightOne {
		return size
	}
	return size * weight >> weightShift
}

// calls turns a sum of weights into a number of calls.
func calls(weight uint64) uint64 { return (weight + weightOne/2) >> weightShift }
