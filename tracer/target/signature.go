package target

import (
	"memtrace/tracer/probe"
)

// signature recognises an allocator by the symbols of a file that defines malloc or the
// allocator's own entries.
type signature struct {
	name string
	// marks: one of these must be defined.
	marks []string
	// all must be defined too.
	all []string
	// tables are the functions to probe, the first name of an address naming it.
	tables [][]probe.Row
	// prefixes are put before the names of C and of the allocator's own table.
	prefixes []string
	release  func(*object) string
}

// signatures are tried in order: libraries that stand in for malloc first, because a
// program may hold them and its C library in one file.
var signatures = []signature{
	{name: "mimalloc", marks: []string{"mi_malloc"}, tables: [][]probe.Row{probe.C, probe.CPlusPlus, probe.Mimalloc}, release: mimallocVersion},
	{name: "tcmalloc", marks: []string{"tc_malloc", "TCMalloc_Internal_GetStats", "MallocExtension_Internal_GetStats"}, tables: [][]probe.Row{probe.C, probe.CPlusPlus, probe.Tcmalloc}, release: tcmallocVersion},
	{name: "jemalloc", marks: []string{"mallctl", "je_mallctl", "_rjem_mallctl", "_rjem_je_mallctl"}, tables: [][]probe.Row{probe.C, probe.CPlusPlus, probe.Jemalloc}, prefixes: []string{"", "je_", "_rjem_"}, release: jemallocVersion},
	{name: "glibc", marks: []string{"__libc_memalign", "gnu_get_libc_version"}, all: []string{"malloc", "free", "__libc_malloc"}, tables: [][]probe.Row{probe.C}, release: glibcVersion},
	{name: "musl", marks: []string{"__dls3", "__malloc_replaced", "__malloc_donate", "__malloc_lock", "__malloc0", "__libc_malloc_impl"}, all: []string{"malloc", "free"}, tables: [][]probe.Row{probe.C}, release: muslVersion},
}

// sanitizers mark allocators that are known and not supported.
var sanitizers = map[string]string{
	"__asan_init": "AddressSanitizer", "__msan_init": "MemorySanitizer", "__tsan_init": "ThreadSanitizer",
	"__hwasan_init": "HWAddressSanitizer", "__lsan_init": "LeakSanitizer", "scudo_malloc_usable_size": "Scudo",
}

// wanted is every name that discovery looks for.
var wanted = wantedNames()

func wantedNames() map[string]bool {
	names := map[string]bool{"dlsym": true, "__libc_malloc": true, "malloc": true, "mi_version": true}
	for _, sign := range signatures {
		for _, name := range append(append([]string{}, sign.marks...), sign.all...) {
			names[name] = true
		}
		for _, row := range sign.expanded() {
			names[row.Name] = true
		}
	}
	for name := range sanitizers {
		names[name] = true
	}
	return names
}

// expanded is the tables with the prefixes applied; C++ names take none.
func (s signature) expanded() []probe.Row {
	prefixes := s.prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	var rows []probe.Row
	for _, prefix := range prefixes {
		for _, table := range s.tables {
			for _, row := range table {
				row.Name = prefix + row.Name
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func (s signature) version(o *object) string {
	if s.release == nil {
		return ""
	}
	return s.release(o)
}

// matches tells whether the file holds this allocator.
func (s signature) matches(o *object) bool {
	for _, name := range s.all {
		if _, ok := o.symbols[name]; !ok {
			return false
		}
	}
	for _, name := range s.marks {
		if _, ok := o.symbols[name]; ok {
			return true
		}
	}
	return false
}

// classify returns the allocator that a file holds.
func classify(o *object) (signature, bool) {
	for _, sign := range signatures {
		if sign.matches(o) {
			return sign, true
		}
	}
	return signature{}, false
}
