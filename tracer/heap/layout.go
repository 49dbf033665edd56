package heap

import "fmt"

// The shape of glibc's allocator state on 64-bit little-endian machines, by version. x86-64
// and arm64 agree: so say Debian's libc6-dbg 2.41 and 2.43 of both. Offsets are in bytes.
// The source of each row is named in it; how to add one is told in CONTRIBUTING.

const (
	binCount     = 254 // list heads of two pointers for bins 1 to 127
	fastbinCount = 10  // NFASTBINS
	minChunk     = 32  // MINSIZE
	chunkHeader  = 16  // CHUNK_HDR_SZ
	alignment    = 16  // MALLOC_ALIGNMENT

	prevInUse   = 1
	isMmapped   = 2
	nonMain     = 4
	sizeFlags   = 7
	minorOldest = 31
)

// layout is one row: the versions it holds for and where their fields are.
type layout struct {
	name     string
	minor    [2]int // glibc 2.first to 2.last
	arena    arenaLayout
	params   paramLayout
	tcache   tcacheLayout
	heapInfo uint64 // sizeof(heap_info)
	// mangled: singly linked lists hold pointers xored with their own address >> 12 (2.32).
	mangled bool
	// mmapTail is what an mmapped chunk's size leaves out at its end (2.43).
	mmapTail uint64
	// affinityCores: the arena limit counts the cores of the affinity mask, not those online.
	affinityCores bool
	source        string
}

// arenaLayout is struct malloc_state. fastbins is 0 where there are none.
type arenaLayout struct {
	fastbins, top, bins, next, attached, systemMem, size uint64
}

// paramLayout is struct malloc_par.
type paramLayout struct {
	trimThreshold, topPad, mmapThreshold, arenaTest, arenaMax uint64
	thpPagesize, hpPagesize                                   uint64 // 0 where there are none
	mmaps, mmapsMax, noDynThreshold, mmappedMem, sbrkBase     uint64
	tcacheBins, tcacheMaxBytes, tcacheCount, size             uint64
}

// tcacheLayout is struct tcache_perthread_struct. free: the counts are of free places (2.42).
type tcacheLayout struct {
	bins    int
	entries uint64
	free    bool
	// pointerKey: a cached chunk's key is its cache's address (to 2.33), later a random number.
	pointerKey bool
}

// chunkBytes is the size of the chunk that a thread cache lies in.
func (t tcacheLayout) chunkBytes() uint64 {
	return (t.entries + 8*uint64(t.bins) + 8 + alignment - 1) &^ (alignment - 1)
}

var (
	arenaWithFastbins = arenaLayout{fastbins: 16, top: 96, bins: 112, next: 2160, attached: 2176, systemMem: 2184, size: 2200}
	arenaNoFastbins   = arenaLayout{top: 8, bins: 24, next: 2072, attached: 2088, systemMem: 2096, size: 2112}

	params31 = paramLayout{trimThreshold: 0, topPad: 8, mmapThreshold: 16, arenaTest: 24, arenaMax: 32,
		mmaps: 40, mmapsMax: 44, noDynThreshold: 52, mmappedMem: 56, sbrkBase: 72,
		tcacheBins: 80, tcacheMaxBytes: 88, tcacheCount: 96, size: 104}
	params35 = paramLayout{trimThreshold: 0, topPad: 8, mmapThreshold: 16, arenaTest: 24, arenaMax: 32,
		thpPagesize: 40, hpPagesize: 48,
		mmaps: 60, mmapsMax: 64, noDynThreshold: 72, mmappedMem: 80, sbrkBase: 96,
		tcacheBins: 104, tcacheMaxBytes: 112, tcacheCount: 120, size: 128}
	params43 = paramLayout{trimThreshold: 0, topPad: 8, mmapThreshold: 16, arenaTest: 24, arenaMax: 32,
		thpPagesize: 48, hpPagesize: 56,
		mmaps: 68, mmapsMax: 72, noDynThreshold: 80, mmappedMem: 88, sbrkBase: 104,
		tcacheBins: 112, tcacheMaxBytes: 120, tcacheCount: 128, size: 136}

	tcache31 = tcacheLayout{bins: 64, entries: 128, pointerKey: true}
	tcache34 = tcacheLayout{bins: 64, entries: 128}
	tcache42 = tcacheLayout{bins: 76, entries: 152, free: true}
)

// layouts holds the rows, newest first: where a file carries no version, the newest row
// whose invariants hold is believed.
var layouts = []layout{
	{
		name: "2.43–2.44", minor: [2]int{43, 44}, arena: arenaNoFastbins, params: params43, tcache: tcache42,
		heapInfo: 48, mangled: true, mmapTail: 16,
		source: "debug information of Debian's libc6-dbg 2.43-7 and 2.44-3",
	},
	{
		name: "2.42", minor: [2]int{42, 42}, arena: arenaWithFastbins, params: params35, tcache: tcache42,
		heapInfo: 48, mangled: true,
		source: "malloc/malloc.c of the 2.42 release",
	},
	{
		name: "2.39–2.41", minor: [2]int{39, 41}, arena: arenaWithFastbins, params: params35, tcache: tcache34,
		heapInfo: 48, mangled: true,
		source: "debug information of Debian's libc6-dbg 2.41-12; malloc/malloc.c of 2.39 and 2.40",
	},
	{
		name: "2.35–2.38", minor: [2]int{35, 38}, arena: arenaWithFastbins, params: params35, tcache: tcache34,
		heapInfo: 48, mangled: true, affinityCores: true,
		source: "debug information of Debian's libc6-dbg 2.36-9; malloc/malloc.c of 2.35, 2.37 and 2.38",
	},
	{
		name: "2.34", minor: [2]int{34, 34}, arena: arenaWithFastbins, params: params31, tcache: tcache34,
		heapInfo: 32, mangled: true, affinityCores: true,
		source: "malloc/malloc.c and malloc/arena.c of the 2.34 release",
	},
	{
		name: "2.32–2.33", minor: [2]int{32, 33}, arena: arenaWithFastbins, params: params31, tcache: tcache31,
		heapInfo: 32, mangled: true,
		source: "malloc/malloc.c and malloc/arena.c of the 2.32 and 2.33 releases",
	},
	{
		name: "2.31", minor: [2]int{31, 31}, arena: arenaWithFastbins, params: params31, tcache: tcache31,
		heapInfo: 32,
		source:   "debug information of Debian's libc6-dbg 2.31-13",
	},
}

// layoutsFor returns the rows to try for glibc 2.minor, best first; minor 0 is a file that
// carries no version, and known tells whether a row was made for this very version.
func layoutsFor(minor int) (rows []layout, known bool) {
	for _, row := range layouts {
		if minor >= row.minor[0] && minor <= row.minor[1] {
			return []layout{row}, true
		}
	}
	if minor != 0 && minor < minorOldest {
		return nil, false
	}
	return layouts, false
}

// describe names the table and how far it is to be trusted.
func (l layout) describe(version string, known bool) string {
	switch {
	case known:
		return "glibc " + l.name
	case version == "":
		return fmt.Sprintf("glibc %s, chosen by its invariants: the file carries no version", l.name)
	}
	return fmt.Sprintf("glibc %s, chosen by its invariants: version %s has no table of its own", l.name, version)
}
