package heap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// mappedTotals sums the chunks that have a mapping of their own.
type mappedTotals struct {
	chunks, bytes     uint64
	resident, swapped uint64
	spans             []span
}

// maxMappedPages bounds the search for mmapped chunks in the middle of mappings.
const maxMappedPages = 1 << 20

// countMapped finds the chunks that mp_ only counts. Each starts with a header at a page's
// start, mostly at that of a mapping; the kernel may have merged its mapping with others.
// What is found is held against mp_'s own count.
func (p *pass) countMapped() (mappedTotals, error) {
	var total mappedTotals
	if p.params.mmaps == 0 {
		return total, nil
	}
	budget := maxMappedPages
	for _, thorough := range []bool{false, true} {
		total = mappedTotals{}
		for _, m := range p.space.maps {
			region := spanOf(m)
			if !anonymous(m) || p.inArena(region) {
				continue
			}
			if err := p.searchMapped(&total, region, thorough, &budget); err != nil {
				return total, err
			}
		}
		if total.chunks == uint64(p.params.mmaps) && total.bytes == p.params.mmappedMem {
			return total, nil
		}
	}
	p.notes = append(p.notes, fmt.Sprintf("%d of %d mmapped chunks were recognised (%d of %d bytes): their residency is a lower bound",
		total.chunks, p.params.mmaps, total.bytes, p.params.mmappedMem))
	return total, nil
}

// inArena tells whether the mapping holds part of an arena.
func (p *pass) inArena(region span) bool {
	return slices.ContainsFunc(p.arenas, func(a *arenaResult) bool {
		return slices.ContainsFunc(a.spans, func(s span) bool { return s.start < region.end && region.start < s.end })
	})
}

// searchMapped looks for chunks one after another from the mapping's start and, when it is
// thorough, at every resident page.
func (p *pass) searchMapped(total *mappedTotals, region span, thorough bool, budget *int) error {
	resident, err := p.pages.region(region.start, region.end)
	if err != nil {
		return err
	}
	for address := region.start; address < region.end; {
		size, err := p.mappedChunk(resident, address, region.end)
		if errors.Is(err, ErrGone) || p.ctx.Err() != nil {
			return errors.Join(err, p.ctx.Err())
		}
		if size != 0 {
			total.chunks++
			total.bytes += size
			total.resident += resident.bytes(address, address+size)
			total.spans = append(total.spans, span{address, address + size})
			address += size
			continue
		}
		if *budget--; !thorough || *budget <= 0 {
			break
		}
		address += p.space.page
	}
	if thorough || total.chunks > 0 {
		total.swapped += resident.swapped
	}
	return nil
}

// mappedChunk returns the size of the mapping of the chunk at address, 0 when there is none.
func (p *pass) mappedChunk(resident *residency, address, limit uint64) (uint64, error) {
	if resident.run(address, 1) == 0 {
		return 0, nil // a header was written, so its page is there
	}
	var raw [chunkHeader]byte
	if err := p.memory.Read(address, raw[:]); err != nil {
		return 0, err
	}
	previous, size := binary.LittleEndian.Uint64(raw[:]), binary.LittleEndian.Uint64(raw[8:])
	total := size&^sizeFlags + p.at.layout.mmapTail
	if previous != 0 || size&sizeFlags != isMmapped || total%p.space.page != 0 || total == 0 || total > limit-address {
		return 0, nil
	}
	return total, nil
}
