package heap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// mappedTotals sums the chunks that have a mapping of their own.
type mappedTotals struct {
	chunks, bytes, resident uint64
	spans                   []span
}

// How far mmapped chunks are searched for in the middle of mappings: in pieces, so that a
// runtime's huge reservations do not fill our memory, and only so many pages in all.
const (
	searchPiece    = 1 << 30
	maxSearchPages = 4 << 20
)

// countMapped finds the chunks that mp_ only counts. Each starts with a header at a page's
// start, mostly at that of a mapping; the kernel may have merged its mapping with others.
// What is found is held against mp_'s own count.
func (p *pass) countMapped() (mappedTotals, error) {
	if p.params.mmaps == 0 {
		return mappedTotals{}, nil
	}
	var total mappedTotals
	for _, search := range []func(*mappedTotals) error{p.mappedAtStarts, p.mappedAnywhere} {
		total = mappedTotals{}
		if err := search(&total); err != nil {
			return total, err
		}
		if total.chunks == uint64(p.params.mmaps) && total.bytes == p.params.mmappedMem {
			return total, nil
		}
	}
	p.notes = append(p.notes, fmt.Sprintf("%d of %d mmapped chunks were recognised (%d of %d bytes): their residency is an estimate",
		total.chunks, p.params.mmaps, total.bytes, p.params.mmappedMem))
	return total, nil
}

// otherAnonymous lists the anonymous mappings that hold no arena.
func (p *pass) otherAnonymous() []span {
	var regions []span
	for _, m := range p.space.maps {
		if region := spanOf(m); anonymous(m) && !p.inArena(region) {
			regions = append(regions, region)
		}
	}
	return regions
}

// inArena tells whether the mapping holds part of an arena.
func (p *pass) inArena(region span) bool {
	return slices.ContainsFunc(p.arenas, func(a *arenaResult) bool {
		return slices.ContainsFunc(a.spans, func(s span) bool { return s.start < region.end && region.start < s.end })
	})
}

// mappedAtStarts looks for chunks one after another from the start of each mapping.
func (p *pass) mappedAtStarts(total *mappedTotals) error {
	for _, region := range p.otherAnonymous() {
		for address := region.start; address < region.end; {
			resident, err := p.pages.region(address, address+p.space.page)
			if err != nil {
				return err
			}
			size, err := p.addMapped(total, resident, address, region.end)
			if err != nil {
				return err
			}
			if size == 0 {
				break
			}
			address += size
		}
	}
	return nil
}

// mappedAnywhere looks at every resident page of the anonymous mappings.
func (p *pass) mappedAnywhere(total *mappedTotals) error {
	budget := uint64(maxSearchPages)
	for _, region := range p.otherAnonymous() {
		for address := region.start; address < region.end && budget > 0; {
			end := min(region.end, address+searchPiece)
			budget -= min(budget, (end-address)/p.space.page)
			resident, err := p.pages.region(address, end)
			if err != nil {
				return err
			}
			for address < end {
				size, err := p.addMapped(total, resident, address, region.end)
				if err != nil {
					return err
				}
				address += max(size, p.space.page)
			}
		}
	}
	return nil
}

// addMapped counts the chunk at address, if there is one, and returns its mapping's size.
func (p *pass) addMapped(total *mappedTotals, header *residency, address, limit uint64) (uint64, error) {
	if header.run(address, 1) == 0 {
		return 0, nil // a header was written, so its page is there
	}
	var raw [chunkHeader]byte
	if err := p.memory.Read(address, raw[:]); err != nil {
		if errors.Is(err, ErrGone) || p.ctx.Err() != nil {
			return 0, err
		}
		return 0, nil // unmapped meanwhile
	}
	previous, head := binary.LittleEndian.Uint64(raw[:]), binary.LittleEndian.Uint64(raw[8:])
	size := head&^sizeFlags + p.at.layout.mmapTail
	if previous != 0 || head&sizeFlags != isMmapped || size%p.space.page != 0 || size == 0 || size > limit-address || size > p.params.mmappedMem {
		return 0, nil
	}
	resident, err := p.pages.region(address, address+size)
	if err != nil {
		return 0, err
	}
	total.chunks++
	total.bytes += size
	total.resident += resident.bytes(address, address+size)
	total.spans = append(total.spans, span{address, address + size})
	return size, nil
}
