package target

import (
	"debug/elf"

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

// Site is where in the file the entry's probe goes.
func (e Entry) Site(cookie uint64) probe.Site {
	return probe.Site{Offset: e.Offset + e.Choice.Offset, Cookie: cookie}
}

// Range is a range of addresses in the process; End is the first one after it.
type Range struct{ Start, End uint64 }

// Find returns the entry of that name or alias.
func (a *Allocator) Find(name string) (Entry, bool) {
	for _, entry := range a.Entries {
		if entry.Name == name {
			return entry, true
		}
		for _, alias := range entry.Aliases {
			if alias == name {
				return entry, true
			}
		}
	}
	return Entry{}, false
}

// maxCode bounds how much of one function is disassembled.
const maxCode = 16 << 10

// makeAllocator collects the entries of a known allocator from an object whose symbols were
// looked up. mappings are all executable mappings, for the addresses in the process.
func makeAllocator(o *object, sign signature, static bool, mappings []Mapping) Allocator {
	a := Allocator{Name: sign.name, Path: o.mapping.Path, Static: static, Mapping: o.mapping}
	at := map[uint64]int{}
	for _, row := range sign.expanded() {
		found, ok := o.symbols[row.Name]
		if !ok {
			continue
		}
		offset, ok := o.fileOffset(found.address)
		if !ok {
			continue
		}
		if index, known := at[offset]; known {
			a.Entries[index].Aliases = append(a.Entries[index].Aliases, row.Name)
			continue
		}
		at[offset] = len(a.Entries)
		size := min(found.size, maxCode)
		if size == 0 {
			size = 64
		}
		entry := Entry{Name: row.Name, Does: row.Does, Offset: offset, Size: found.size}
		entry.Choice = probe.Choose(o.elf.Machine, o.code(offset, size), row.Does)
		entry.Address, a.Mapping = locate(o.mapping, offset, mappings, a.Mapping)
		a.Entries = append(a.Entries, entry)
	}
	a.Inside = inside(a, o)
	a.Version = sign.version(o)
	return a
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

// inside is the code that belongs to the allocator. glibc keeps it in one object file, so
// what lies between the functions of that file is its own too, static functions included
// (_mid_memalign, which small aligned requests go through). Elsewhere the entries are known
// only, or the whole library is the allocator.
func inside(a Allocator, o *object) []Range {
	if len(a.Entries) == 0 {
		return nil
	}
	if !a.Static && a.Name != "glibc" && a.Name != "musl" {
		return []Range{{a.Mapping.Start, a.Mapping.End}}
	}
	var ranges []Range
	var core Range
	for _, entry := range a.Entries {
		r := Range{entry.Address, entry.Address + max(entry.Size, 1)}
		if !oneFile[entry.Name] {
			ranges = append(ranges, r)
			continue
		}
		if core.End == 0 {
			core = r
		}
		core = Range{min(core.Start, r.Start), max(core.End, r.End)}
	}
	// Linked by section or reordered, the functions would not lie together.
	if a.Name == "glibc" && core.End != 0 && core.End-core.Start <= maxCore && o.elf.Machine != elf.EM_NONE {
		return append(ranges, core)
	}
	for _, entry := range a.Entries {
		if oneFile[entry.Name] {
			ranges = append(ranges, Range{entry.Address, entry.Address + max(entry.Size, 1)})
		}
	}
	return ranges
}

// maxCore is more than malloc.o of any glibc takes.
const maxCore = 64 << 10

// oneFile names the functions that glibc defines in malloc.c (reallocarray has its own file).
var oneFile = map[string]bool{"malloc": true, "calloc": true, "realloc": true, "posix_memalign": true, "aligned_alloc": true,
	"memalign": true, "valloc": true, "pvalloc": true, "free": true, "malloc_trim": true, "mallopt": true}
