package heap

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/prometheus/procfs"
)

// fakeHeap is a small process in memory: glibc's data, a brk heap, and one heap of a
// thread's arena, laid out by hand for one layout.
type fakeHeap struct {
	row    layout
	blocks []block
	want   struct{ binned, binnedBytes, fast, fastBytes uint64 }
}

const (
	fakeData   = 0x7f0000000000
	fakeParams = fakeData + 0x400
	fakeMain   = fakeData + 0x1000
	fakeBrk    = 0x555500000000
	fakeThread = 0x7e0000000000
	fakeBytes  = 0x21000
	fakePage   = 4096
)

// newFakeHeap lays out the chunks of both arenas.
func newFakeHeap(row layout) *fakeHeap {
	f := &fakeHeap{row: row, blocks: []block{
		{fakeData, make([]byte, 0x3000)}, {fakeBrk, make([]byte, fakeBytes)}, {fakeThread, make([]byte, fakeBytes)},
	}}
	thread := uint64(fakeThread) + row.heapInfo
	f.arena(fakeMain, fakeBrk, fakeBrk+fakeBytes)
	f.arena(thread, alignUp(thread+row.arena.size, alignment), fakeThread+fakeBytes)
	f.put(fakeMain+row.arena.next, thread)
	f.put(thread+row.arena.next, fakeMain)
	f.put(fakeThread, thread)
	f.put(fakeThread+16, fakeBytes)
	f.put(fakeThread+24, fakeBytes)

	l := row.params
	f.put(fakeParams+l.trimThreshold, 128<<10)
	f.put(fakeParams+l.mmapThreshold, 128<<10)
	f.put(fakeParams+l.arenaTest, 8)
	f.put(fakeParams+l.mmapsMax-l.mmapsMax%8, 65536<<(8*(l.mmapsMax%8)))
	f.put(fakeParams+l.sbrkBase, fakeBrk)
	f.put(fakeParams+l.tcacheBins, 64)
	f.put(fakeParams+l.tcacheMaxBytes, 1032)
	f.put(fakeParams+l.tcacheCount, 7)
	return f
}

// arena fills [start, end) with chunks: a thread cache, then blocks in use, free ones in
// the unsorted list, fast ones, and the top.
func (f *fakeHeap) arena(address, start, end uint64) {
	l := f.row.arena
	for i := uint64(0); i < binCount/2; i++ {
		head := address + l.bins + i*16 - chunkHeader
		f.put(head+16, head)
		f.put(head+24, head)
	}
	head := address + l.bins - chunkHeader
	f.put(address+l.attached, 1)
	f.put(address+l.systemMem, fakeBytes)
	cursor, last, fast := start, head, uint64(0)
	use := func(size uint64) uint64 {
		at := cursor
		f.put(at+8, size|prevInUse)
		cursor += size
		return at
	}
	use(f.row.tcache.chunkBytes())
	for i := uint64(0); i < 6; i++ {
		use(0x40 + i*0x10)
		free := use(0x500 + i*0x800)
		f.put(cursor, cursor-free)
		f.put(cursor+8, 0x30) // in use, the chunk before is not
		cursor += 0x30
		f.put(last+16, free)
		f.put(free+24, last)
		last = free
		f.want.binned++
		f.want.binnedBytes += f.get(free+8) &^ sizeFlags
		if l.fastbins != 0 {
			quick := use(0x20)
			pointer := fast
			if f.row.mangled {
				pointer ^= (quick + 16) >> 12
			}
			f.put(quick+16, pointer)
			fast = quick
			f.want.fast++
			f.want.fastBytes += 0x20
		}
	}
	f.put(last+16, head)
	f.put(head+24, last)
	use(0x60)
	if l.fastbins != 0 {
		f.put(address+l.fastbins, fast)
	}
	f.put(address+l.top, cursor)
	f.put(cursor+8, (end-cursor)|prevInUse)
}

func (f *fakeHeap) bytes(address uint64, n int) []byte {
	for _, b := range f.blocks {
		if address >= b.start && address-b.start+uint64(n) <= uint64(len(b.bytes)) {
			return b.bytes[address-b.start:][:n]
		}
	}
	return nil
}

func (f *fakeHeap) put(address, value uint64) {
	binary.LittleEndian.PutUint64(f.bytes(address, 8), value)
}

func (f *fakeHeap) get(address uint64) uint64 {
	return binary.LittleEndian.Uint64(f.bytes(address, 8))
}

// Read is Memory.Read.
func (f *fakeHeap) Read(address uint64, into []byte) error {
	if address+uint64(len(into)) < address {
		return errors.New("not mapped")
	}
	from := f.bytes(address, len(into))
	if from == nil {
		return errors.New("not mapped")
	}
	copy(into, from)
	return nil
}

// region says that every page is resident.
func (f *fakeHeap) region(start, end uint64) (*residency, error) {
	if end < start || end-start > maxRegion>>12 {
		return nil, errors.New("too large")
	}
	r := newResidency(start, end, fakePage)
	for i := range r.present {
		r.present[i] = ^uint64(0)
	}
	return r, nil
}

// pass prepares a reading of the fake process.
func (f *fakeHeap) pass() *pass {
	whole := &space{page: fakePage, heapStart: fakeBrk, brk: fakeBrk + fakeBytes}
	for _, b := range []block{f.blocks[1], f.blocks[2], f.blocks[0]} {
		whole.maps = append(whole.maps, &procfs.ProcMap{
			StartAddr: uintptr(b.start), EndAddr: uintptr(b.start) + uintptr(len(b.bytes)),
			Perms: &procfs.ProcMapPermissions{Read: true, Write: true, Private: true},
		})
	}
	return &pass{
		ctx: context.Background(), memory: f, pages: f, cores: 1, space: whole,
		look: func() (*space, error) { return whole, nil },
		at:   found{Location{MainArena: fakeMain, Params: fakeParams}, f.row},
	}
}
