package symbolize

import (
	"cmp"
	"debug/dwarf"
	"encoding/binary"
	"math"
	"slices"
	"sort"
)

// Limits of the index from addresses to units.
const (
	maxARanges    = 64 << 20 // bytes of .debug_aranges
	maxUnitRanges = 2 << 20
)

// unitAt returns the index of the unit that describes the address; -1 when none does.
func (d *debugInfo) unitAt(address uint64) int {
	if unit := findRange(d.ranges, address); unit >= 0 || d.scanned {
		return unit
	}
	// Clang and rustc leave .debug_aranges out: ask every unit that is not in it.
	d.scanned = true
	listed := make(map[int]bool)
	for _, r := range d.ranges {
		listed[r.unit] = true
	}
	for i := range d.units {
		if listed[i] || len(d.ranges) > maxUnitRanges {
			continue
		}
		_ = guard("unit", func() error {
			d.ranges = append(d.ranges, d.rootRanges(i)...)
			return nil
		})
	}
	d.ranges = sortedRanges(d.ranges)
	d.release()
	return findRange(d.ranges, address)
}

// findRange returns the unit of the innermost range that holds the address, or -1.
func findRange(ranges []unitRange, address uint64) int {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].low > address })
	for j := i - 1; j >= 0 && i-j < maxAliases; j-- {
		if address < ranges[j].high {
			return ranges[j].unit
		}
	}
	return -1
}

func sortedRanges(ranges []unitRange) []unitRange {
	slices.SortFunc(ranges, func(a, b unitRange) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(b.high, a.high))
	})
	return ranges
}

// rootRanges asks the unit's first entry for the addresses it describes.
func (d *debugInfo) rootRanges(index int) []unitRange {
	data, err := d.open(index)
	if err != nil {
		return nil
	}
	_, root, err := d.root(data, index)
	if err != nil || root.Tag != dwarf.TagCompileUnit {
		return nil
	}
	pairs, err := data.Ranges(root)
	if err != nil {
		return nil
	}
	var ranges []unitRange
	for _, p := range pairs {
		if p[0] < p[1] && d.code(p[0]) {
			ranges = append(ranges, unitRange{p[0], p[1], index})
		}
	}
	return ranges
}

// readARanges reads .debug_aranges: for each unit a header (length, version 2, offset of
// the unit, sizes of address and segment) and pairs of address and length up to a pair of zeros.
func (d *debugInfo) readARanges() []unitRange {
	data, err := d.file.SectionData(".debug_aranges", maxARanges)
	if err != nil {
		return nil
	}
	const headSize, pairSize = 12, 16
	var ranges []unitRange
	for len(data) >= headSize && len(ranges) < maxUnitRanges {
		length := uint64(binary.LittleEndian.Uint32(data))
		if length == math.MaxUint32 || length < headSize-4 || length > uint64(len(data)-4) {
			return ranges // the 64-bit form is left to the units themselves
		}
		set := data[:4+length]
		data = data[4+length:]
		unit := d.unitOf(uint64(binary.LittleEndian.Uint32(set[6:])))
		if binary.LittleEndian.Uint16(set[4:]) != 2 || set[10] != 8 || set[11] != 0 || unit < 0 {
			continue
		}
		// The pairs are aligned to their own size, counted from the header.
		for pairs := set[min(len(set), pairSize):]; len(pairs) >= pairSize; pairs = pairs[pairSize:] {
			low, size := binary.LittleEndian.Uint64(pairs), binary.LittleEndian.Uint64(pairs[8:])
			if size > 0 && low+size > low && d.code(low) {
				ranges = append(ranges, unitRange{low, low + size, unit})
			}
		}
	}
	return ranges
}
