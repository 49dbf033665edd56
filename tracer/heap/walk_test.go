package heap

import (
	"encoding/binary"
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// Every row of the layout table reads a heap that was laid out by it, and finds it by its
// invariants; rows without a Debian package are tested by this alone.
func TestEveryLayoutReadsItsOwnHeap(t *testing.T) {
	for _, row := range layouts {
		t.Run(row.name, func(t *testing.T) {
			f := newFakeHeap(row)
			s := search{memory: f, row: row, page: fakePage, heapStart: fakeBrk, strict: true}
			if main, params := s.scan(f.blocks[:1]); main != fakeMain || params != fakeParams {
				t.Errorf("main_arena found at %#x and mp_ at %#x, want %#x and %#x", main, params, fakeMain, fakeParams)
			}
			p := f.pass()
			if err := p.read(1); err != nil {
				t.Fatal(err)
			}
			if torn := p.torn(); len(torn) != 0 {
				t.Fatalf("torn: %q", torn)
			}
			m := p.mallinfo()
			if m.Ordblks != f.want.binned+2 || m.Smblks != f.want.fast || m.Fsmblks != f.want.fastBytes ||
				m.Arena != 2*fakeBytes || m.Fordblks != f.want.binnedBytes+f.want.fastBytes+p.arenas[0].tally.topBytes+p.arenas[1].tally.topBytes {
				t.Errorf("mallinfo %+v, want %+v", m, f.want)
			}
		})
	}
}

// A version without a table of its own is read by the newest one that fits, and says so;
// one that none fits, and one that is too old, is refused with what to do.
func TestUnknownVersions(t *testing.T) {
	newest := layouts[0]
	f := newFakeHeap(newest)
	lib := &library{path: "/lib/libc.so.6", version: "2.99", minor: 99, data: []span{{fakeData, fakeData + 0x3000}}}
	at, err := locate(f, lib, nil, fakePage, fakeBrk)
	if err != nil || at.Known || at.MainArena != fakeMain || !strings.Contains(at.Table, "2.99 has no table") {
		t.Errorf("%+v, %v", at.Location, err)
	}
	if at, err := locate(f, &library{path: "/bin/static", data: lib.data, static: true}, nil, fakePage, fakeBrk); err != nil || at.layout.name != newest.name {
		t.Errorf("%+v, %v", at.Location, err)
	}
	f.put(fakeMain+newest.arena.next, 0) // no table fits any more
	for _, lib.minor = range []int{99, 30} {
		if _, err := locate(f, lib, nil, fakePage, fakeBrk); err == nil || !strings.Contains(err.Error(), "tracer/heap/layout.go") {
			t.Errorf("version 2.%d: error %v", lib.minor, err)
		}
	}
}

// Both ways of counting the main arena agree.
func TestListsAgreeWithTheWalk(t *testing.T) {
	for _, row := range layouts {
		p := newFakeHeap(row).pass()
		if err := p.read(1); err != nil {
			t.Fatal(err)
		}
		walked := *p.arenas[0].tally
		if err := p.countLists(p.arenas[0]); err != nil {
			t.Fatal(err)
		}
		listed := *p.arenas[0].tally
		if walked.binned != listed.binned || walked.binnedBytes != listed.binnedBytes || walked.fastBytes != listed.fastBytes ||
			walked.topBytes != listed.topBytes || walked.freeResident != listed.freeResident || walked.largest != listed.largest {
			t.Errorf("%s: walked %+v, listed %+v", row.name, walked, listed)
		}
	}
}

func TestDamageIsNoticed(t *testing.T) {
	row := layouts[len(layouts)-1]
	heap := newFakeHeap(row)
	first := heap.get(fakeMain + row.arena.bins) // the first chunk of the unsorted list
	fast := heap.get(fakeMain + row.arena.fastbins)
	for name, damage := range map[string]struct{ address, value uint64 }{
		"a size that is too large":       {first + 8, 1 << 40},
		"a size of nothing":              {first + 8, prevInUse},
		"a size that is no multiple":     {first + 8, 0x508 | prevInUse},
		"a link that leads astray":       {first + 16, 0x414141414140},
		"a list that goes round":         {first + 16, first},
		"a chunk that is in no list":     {first + 24, first},
		"a fast bin that goes round":     {fast + 16, fast},
		"a fast bin that leads astray":   {fast + 16, 0x414141414140},
		"a fast bin with a lost address": {fakeMain + row.arena.fastbins, fakeBrk + 0x1000},
		"a top that is elsewhere":        {fakeMain + row.arena.top, fakeBrk + fakeBytes},
		"a heap without an arena":        {fakeThread, 0},
		"heaps that go round":            {fakeThread + 8, fakeThread},
		"a heap that is too long":        {fakeThread + 16, 1 << 25},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeHeap(row)
			f.put(damage.address, damage.value)
			p := f.pass()
			if err := p.read(1); err != nil {
				t.Fatal(err)
			}
			if len(p.torn()) == 0 {
				t.Error("the damage went unnoticed")
			}
		})
	}
}

// FuzzHeap changes words of a heap at will: the walk ends, does not panic, and never
// claims more than there is.
func FuzzHeap(f *testing.F) {
	patch := func(block byte, offset uint16, value uint64) []byte {
		b := []byte{block}
		b = binary.LittleEndian.AppendUint16(b, offset)
		return binary.LittleEndian.AppendUint64(b, value)
	}
	for i := range layouts {
		f.Add(byte(i), []byte{})
		f.Add(byte(i), patch(0, uint16(0x1000/8), 1))
		f.Add(byte(i), patch(1, 0x291/8, 1<<40))
		f.Add(byte(i), append(patch(1, 0x2a0/8, fakeBrk), patch(2, 2, fakeBytes*2)...))
	}
	f.Fuzz(func(t *testing.T, row byte, patches []byte) {
		heap := newFakeHeap(layouts[int(row)%len(layouts)])
		const size = 11
		for ; len(patches) >= size; patches = patches[size:] {
			bytes := heap.blocks[int(patches[0])%len(heap.blocks)].bytes
			offset := int(binary.LittleEndian.Uint16(patches[1:])) * 8 % len(bytes)
			copy(bytes[offset:], patches[3:size])
		}
		search{memory: heap, row: heap.row, page: fakePage, heapStart: fakeBrk, strict: true}.scan(heap.blocks[:1])
		p := heap.pass()
		if err := p.read(2); err != nil {
			return
		}
		h := p.record()
		if h.Consistent {
			soundFigures(t, h)
		}
	})
}

// soundFigures holds for every heap that is not torn.
func soundFigures(t *testing.T, h *recording.Heap) {
	var free uint64
	for _, a := range h.Arenas {
		free += a.FreeBytes
		if a.TrimmableBytes > a.FreeResidentBytes || a.FreeResidentBytes > a.FreeBytes {
			t.Errorf("impossible figures: %+v", a)
		}
	}
	if free != h.MallInfo.Fordblks {
		t.Errorf("the arenas' free bytes are %d, fordblks is %d", free, h.MallInfo.Fordblks)
	}
}
