package heap

import (
	"encoding/binary"
	"errors"
)

// cacheTotals sums the thread caches.
type cacheTotals struct {
	threads       int
	chunks, bytes uint64
}

// threadCache is a tcache_perthread_struct that holds chunks.
type threadCache struct {
	chunks, bytes uint64
	key           uint64
}

// maxCached bounds the chunks that are followed in thread caches: a thousand threads with
// all their bins full.
const maxCached = 1 << 21

// countCaches looks at the chunks that are as large as a thread cache and adds up those
// that are one. A cache is known by its counts, by chunks of the size that its bin holds,
// and by the key that free writes into each: every chunk of a process carries the same
// (from 2.34), or the address of its cache. A cache that never held a chunk goes unseen up
// to 2.41, where it is all zeros.
func (p *pass) countCaches(candidates []uint64) (cacheTotals, error) {
	byKey := map[uint64]cacheTotals{}
	var idle int
	var looked uint64
	for _, address := range candidates {
		cache, ok, err := p.readCache(address)
		if errors.Is(err, ErrGone) || p.ctx.Err() != nil {
			return cacheTotals{}, errors.Join(err, p.ctx.Err())
		}
		if looked += cache.chunks; looked > maxCached {
			p.notes = append(p.notes, "the thread caches hold more chunks than can be: they were not counted to the end")
			break
		}
		if err != nil || !ok {
			continue // it was freed or changed meanwhile: not a cache
		}
		if cache.chunks == 0 {
			idle++
			continue
		}
		sum := byKey[cache.key]
		byKey[cache.key] = cacheTotals{sum.threads + 1, sum.chunks + cache.chunks, sum.bytes + cache.bytes}
	}
	var best cacheTotals
	for _, sum := range byKey {
		if sum.chunks > best.chunks {
			best = sum
		}
	}
	best.threads += idle
	return best, nil
}

// readCache reads one candidate and follows its lists.
func (p *pass) readCache(address uint64) (threadCache, bool, error) {
	l := p.at.layout.tcache
	raw := make([]byte, l.entries+8*uint64(l.bins))
	if err := p.memory.Read(address, raw); err != nil {
		return threadCache{}, false, err
	}
	var cache threadCache
	empty := true
	for i := range l.bins {
		count := uint64(binary.LittleEndian.Uint16(raw[2*i:]))
		entry := binary.LittleEndian.Uint64(raw[l.entries+8*uint64(i):])
		if count > p.params.tcacheCount {
			return cache, false, nil
		}
		if l.free {
			empty = empty && count == 0
			count = p.params.tcacheCount - count
		}
		if (count == 0) != (entry == 0) {
			return cache, false, nil
		}
		if ok, err := p.followCache(&cache, address, i, count, entry); !ok {
			return cache, false, err
		}
	}
	if l.free {
		return cache, !empty, nil
	}
	return cache, cache.chunks > 0, nil
}

// followCache adds the chunks of one bin and checks each.
func (p *pass) followCache(cache *threadCache, address uint64, bin int, count, entry uint64) (bool, error) {
	const smallBins = 64
	for ; count > 0; count-- {
		if entry == 0 || entry%alignment != 0 {
			return false, nil
		}
		var raw [minChunk]byte // the header, next, key
		if err := p.memory.Read(entry-chunkHeader, raw[:]); err != nil {
			return false, err
		}
		size := binary.LittleEndian.Uint64(raw[8:]) &^ sizeFlags
		if bin < smallBins && size != uint64(bin+2)*alignment {
			return false, nil
		}
		key := binary.LittleEndian.Uint64(raw[24:])
		if cache.chunks == 0 {
			cache.key = key
		}
		if p.at.layout.tcache.pointerKey {
			if key != address {
				return false, nil
			}
			cache.key = 0
		} else if key != cache.key {
			return false, nil
		}
		cache.chunks++
		cache.bytes += size
		entry = p.at.layout.reveal(entry, binary.LittleEndian.Uint64(raw[16:]))
	}
	return entry == 0, nil
}
