// Package probe knows the functions of an allocator, chooses where in each of them a probe
// goes, and puts probes in and takes them out.
package probe

// Operation is what a call of an allocator's function does, and with it where its
// arguments are. The numbers are shared with the kernel half.
type Operation uint8

const (
	// Malloc makes a block; the size is the first argument.
	Malloc Operation = 1 + iota
	// Calloc makes a block; the size is the product of the first two arguments.
	Calloc
	// Realloc resizes the block in the first argument to the size in the second.
	Realloc
	// Reallocarray resizes the block in the first argument to the product of the others.
	Reallocarray
	// PosixMemalign makes a block of the size in the third argument and stores its address
	// where the first points.
	PosixMemalign
	// Memalign makes a block of the size in the second argument.
	Memalign
	// Free releases the block in the first argument; null is no block.
	Free
	// Trim is malloc_trim: it gives free memory back to the kernel.
	Trim
	// Mallopt changes a parameter: its number is the first argument, its value the second.
	Mallopt
	// NewAligned makes an aligned block of the size in the first argument: valloc, pvalloc,
	// and operator new with an alignment.
	NewAligned
)

// names are for people; the order is that of the constants.
var names = [...]string{"", "malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "memalign", "free",
	"malloc_trim", "mallopt", "new"}

// String returns the operation's usual name.
func (o Operation) String() string {
	if int(o) < len(names) {
		return names[o]
	}
	return "unknown"
}

// Makes tells whether the operation can make a new block.
func (o Operation) Makes() bool {
	return o >= Malloc && o <= Memalign || o == NewAligned
}

// arguments is how many arguments tell what the call does; the order is that of the constants.
var arguments = [...]int{4, 1, 2, 2, 3, 3, 2, 1, 1, 2, 1}

// Arguments is how many of the first argument registers must still hold the arguments where
// a probe is.
func (o Operation) Arguments() int {
	if int(o) < len(arguments) {
		return arguments[o]
	}
	return arguments[0]
}

// Row is one function of an allocator.
type Row struct {
	Name string // as in the symbol table
	Does Operation
}

// C is the allocator's functions that a C library, or a library that stands in for it,
// exports. Where two names share an address the earlier row names it.
var C = []Row{
	{"malloc", Malloc},
	{"calloc", Calloc},
	{"realloc", Realloc},
	{"reallocarray", Reallocarray},
	{"posix_memalign", PosixMemalign},
	{"aligned_alloc", Memalign},
	{"memalign", Memalign},
	{"valloc", NewAligned},
	{"pvalloc", NewAligned},
	{"free", Free},
	{"cfree", Free},
	{"free_sized", Free},
	{"free_aligned_sized", Free},
	{"malloc_trim", Trim},
	{"mallopt", Mallopt},
}

// CPlusPlus is operator new and delete (Itanium names) of libraries whose operators do not
// come through malloc. In libstdc++ they do, so there they are not probed.
var CPlusPlus = []Row{
	{"_Znwm", Malloc},
	{"_Znam", Malloc},
	{"_ZnwmRKSt9nothrow_t", Malloc},
	{"_ZnamRKSt9nothrow_t", Malloc},
	{"_ZnwmSt11align_val_t", NewAligned},
	{"_ZnamSt11align_val_t", NewAligned},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", NewAligned},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", NewAligned},
	{"_ZdlPv", Free},
	{"_ZdaPv", Free},
	{"_ZdlPvm", Free},
	{"_ZdaPvm", Free},
	{"_ZdlPvRKSt9nothrow_t", Free},
	{"_ZdaPvRKSt9nothrow_t", Free},
	{"_ZdlPvSt11align_val_t", Free},
	{"_ZdaPvSt11align_val_t", Free},
	{"_ZdlPvmSt11align_val_t", Free},
	{"_ZdaPvmSt11align_val_t", Free},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", Free},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", Free},
}

// Jemalloc is jemalloc's own interface beside C's; a build may put a prefix before every
// name (je_, _rjem_). The flags argument of mallocx carries the alignment.
var Jemalloc = []Row{
	{"mallocx", Malloc},
	{"rallocx", Realloc},
	{"dallocx", Free},
	{"sdallocx", Free},
}

// Mimalloc is mimalloc's own interface.
var Mimalloc = []Row{
	{"mi_malloc", Malloc},
	{"mi_malloc_small", Malloc},
	{"mi_zalloc", Malloc},
	{"mi_zalloc_small", Malloc},
	{"mi_calloc", Calloc},
	{"mi_mallocn", Calloc},
	{"mi_realloc", Realloc},
	{"mi_reallocf", Realloc},
	{"mi_reallocn", Reallocarray},
	{"mi_malloc_aligned", NewAligned},
	{"mi_zalloc_aligned", NewAligned},
	{"mi_aligned_alloc", Memalign},
	{"mi_memalign", Memalign},
	{"mi_posix_memalign", PosixMemalign},
	{"mi_valloc", NewAligned},
	{"mi_pvalloc", NewAligned},
	{"mi_new", Malloc},
	{"mi_new_nothrow", Malloc},
	{"mi_new_aligned", NewAligned},
	{"mi_new_aligned_nothrow", NewAligned},
	{"mi_free", Free},
	{"mi_free_size", Free},
	{"mi_free_aligned", Free},
	{"mi_free_size_aligned", Free},
	{"mi_cfree", Free},
}

// Tcmalloc is gperftools' own interface; most of it shares addresses with C's.
var Tcmalloc = []Row{
	{"tc_malloc", Malloc},
	{"tc_calloc", Calloc},
	{"tc_realloc", Realloc},
	{"tc_posix_memalign", PosixMemalign},
	{"tc_memalign", Memalign},
	{"tc_valloc", NewAligned},
	{"tc_pvalloc", NewAligned},
	{"tc_new", Malloc},
	{"tc_newarray", Malloc},
	{"tc_new_nothrow", Malloc},
	{"tc_newarray_nothrow", Malloc},
	{"tc_malloc_skip_new_handler", Malloc},
	{"tc_free", Free},
	{"tc_cfree", Free},
	{"tc_free_sized", Free},
	{"tc_delete", Free},
	{"tc_deletearray", Free},
	{"tc_delete_sized", Free},
	{"tc_deletearray_sized", Free},
}
