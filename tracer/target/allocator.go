package target

import (
	"slices"

	"memtrace/tracer/probe"
)

// Allocator is a library, or a part of the executable, that hands out memory.
type Allocator struct {
	Name    string // "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc"
	Version string // from the file's own bytes, "" when they do not tell
	Path    string // of its file, as the process sees it
	// Static: it is part of the executable.
	Static bool
	// Mapping is the executable mapping of its file that holds its functions; OpenMapped
	// opens the file.
	Mapping Mapping
	// Entries are its functions that are probed, one for each address, in the order of the
	// table in package probe.
	Entries []Entry
	// Inside are the ranges of its code: a call of an entry whose return address lies in one
	// is the allocator calling itself.
	Inside []Range
}

// Entry is one function of the allocator and where its probe goes.
type Entry struct {
	Name    string // the first of its names in the table
	Aliases []string
	Does    probe.Operation
	Offset  uint64 // of its first instruction, in the file
	Address uint64 // of its first instruction, in the process
	Size    uint64 // bytes, 0 when unknown
	// Choice is where the probe goes, relative to Offset.
	Choice probe.Choice
}

// Site is where in the file the entry's probe goes. The cookie has 32 bits; the upper half
// becomes the choice's Depth, so that the kernel half finds the return address.
func (e Entry) Site(cookie uint64) probe.Site {
	return probe.Site{Offset: e.Offset + e.Choice.Offset, Cookie: cookie&(1<<32-1) | e.Choice.Depth<<32}
}

// Range is a range of addresses in the process; End is the first one after it.
type Range struct{ Start, End uint64 }

// Find returns the entry of that name or alias.
func (a *Allocator) Find(name string) (Entry, bool) {
	for _, entry := range a.Entries {
		if entry.Name == name || slices.Contains(entry.Aliases, name) {
			return entry, true
		}
	}
	return Entry{}, false
}

// maxCode bounds how much of one function is disassembled.
const maxCode = 16 << 10

// makeAllocator collects the entries of a known allocator from an object whose symbols were
// looked up. mappings are all executable mappings, for the addresses in the process.
func makeAllocator(o *object, sign signature, static bool, mappings []Mapping) Allocator {
	a := Allocator{Name: sign.name, Path: o.mapping.Path, Static: static, Mapping: o.mapping, Version: sign.version(o)}
	at := map[uint64]int{}
	for _, row := range sign.expanded() {
		offset, size, ok := o.place(row.Name)
		if !ok {
			continue
		}
		if index, known := at[offset]; known {
			a.Entries[index].Aliases = append(a.Entries[index].Aliases, row.Name)
			continue
		}
		at[offset] = len(a.Entries)
		a.Entries = append(a.Entries, Entry{Name: row.Name, Does: row.Does, Offset: offset, Size: size})
	}
	a.Entries = mergeJumps(a.Entries, o)
	for i := range a.Entries {
		entry := &a.Entries[i]
		entry.Choice = probe.Choose(o.elf.Machine, o.code(entry.Offset, codeSize(entry.Size)), entry.Does)
		entry.Address, a.Mapping = locate(o.mapping, entry.Offset, mappings, a.Mapping)
	}
	a.Inside = inside(a)
	return a
}

// codeSize is how much of a function is read: what its symbol says, within bounds.
func codeSize(size uint64) uint64 {
	const unknown = 64
	if size == 0 {
		return unknown
	}
	return min(size, maxCode)
}

// place finds a defined function in the file.
func (o *object) place(name string) (offset, size uint64, ok bool) {
	found, ok := o.symbols[name]
	if !ok {
		return 0, 0, false
	}
	offset, ok = o.fileOffset(found.address)
	return offset, found.size, ok
}

// mergeJumps takes out the entries that are nothing but a jump to another entry that does
// the same: the probe there sees their calls too.
func mergeJumps(entries []Entry, o *object) []Entry {
	last := jumpTargets(entries, o)
	into := map[int]int{} // where an entry ends up → its place among the kept
	var kept []Entry
	for i, entry := range entries { // in the table's order: the earliest name stays the name
		body := entries[last[i]]
		at, known := into[last[i]]
		if !known {
			into[last[i]] = len(kept)
			entry.Offset, entry.Size = body.Offset, body.Size
			kept = append(kept, entry)
			continue
		}
		kept[at].Aliases = append(append(kept[at].Aliases, entry.Name), entry.Aliases...)
	}
	return kept
}

// jumpTargets returns for each entry the one that it leads to, itself if it is no mere jump.
func jumpTargets(entries []Entry, o *object) []int {
	at := map[uint64]int{}
	for i, entry := range entries {
		at[entry.Offset] = i
	}
	next := make([]int, len(entries))
	for i, entry := range entries {
		next[i] = i
		if to, ok := probe.JumpsTo(o.elf.Machine, o.code(entry.Offset, codeSize(entry.Size))); ok {
			if into, known := at[o.throughPLT(entry.Offset+uint64(to))]; known && entries[into].Does == entry.Does {
				next[i] = into
			}
		}
	}
	last := make([]int, len(entries))
	for i := range next {
		last[i] = i
		for steps := 0; steps < len(next) && next[last[i]] != last[i]; steps++ { // a forged file may go in circles
			last[i] = next[last[i]]
		}
	}
	return last
}

// locate finds where the process maps an offset of the file, and the mapping; 0 and the
// fallback when it does not.
func locate(file Mapping, offset uint64, mappings []Mapping, fallback Mapping) (uint64, Mapping) {
	for _, m := range mappings {
		if m.Executable && m.sameFile(file) && offset >= m.Offset && offset-m.Offset < m.End-m.Start {
			return m.Start + (offset - m.Offset), m
		}
	}
	return 0, fallback
}

// inside is the code that belongs to the allocator. A C library keeps its allocator
// together, so what lies between its functions is its own too, static functions included
// (glibc's _mid_memalign, which small aligned requests go through, musl's realloc behind a
// jump). Linked into an executable the entries are all that is known for certain. Any other
// library is an allocator as a whole.
func inside(a Allocator) []Range {
	if !a.Static && together[a.Name] == nil {
		return []Range{{a.Mapping.Start, a.Mapping.End}}
	}
	var ranges []Range
	var core Range
	for _, entry := range a.Entries {
		if entry.Address == 0 {
			continue
		}
		r := Range{entry.Address, entry.Address + max(entry.Size, 1)}
		ranges = append(ranges, r)
		switch {
		case !slices.Contains(together[a.Name], entry.Name):
		case core.End == 0:
			core = r
		default:
			core = Range{min(core.Start, r.Start), max(core.End, r.End)}
		}
	}
	// Reordered by a linker the functions would lie far apart, with others' between them.
	if core.End-core.Start > maxCore {
		return ranges
	}
	joined := []Range{core}
	for _, r := range ranges {
		if r.Start < core.Start || r.End > core.End {
			joined = append(joined, r)
		}
	}
	return joined
}

// maxCore is more than the allocator of any glibc or musl takes.
const maxCore = 64 << 10

// together names the functions that a C library links side by side: glibc defines them in
// malloc.c, musl in one directory.
var together = map[string][]string{
	"glibc": {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc", "free", "malloc_trim", "mallopt"},
	"musl":  {"malloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "free"},
}
