// Package unwind turns the call frame information of an ELF file (.eh_frame) into the
// compact table by which the kernel half walks stacks.
//
// .eh_frame is read entry by entry, every function's instructions are executed for the two
// or three values that a walk needs (the canonical frame address, the caller's frame pointer
// and the return address), and each state becomes a Row of 64 bits. The binary search table
// .eh_frame_hdr is not trusted; it only tells where .eh_frame is in files without section
// headers.
package unwind

import (
	"cmp"
	"debug/elf"
	"errors"
	"io"
	"slices"
	"sort"
)

// BucketShift is the binary logarithm of how many bytes of code share a bucket of rows.
const BucketShift = 8

// bucketBytes is how many bytes of code share a bucket.
const bucketBytes = 1 << BucketShift

// Table says for each byte of a file's code how to step to the caller. Places in the file
// are file offsets, so that a mapping is all one needs to know to go from an address to one.
type Table struct {
	// Start is the file offset of the first bucket, a multiple of 1<<BucketShift.
	Start uint64
	// Buckets holds the index in Rows of the first row of each bucket, and of the end.
	Buckets []uint32
	// Rows are ordered by place. Each bucket has one for its first byte.
	Rows []Row
	// Functions is how many entries the table was made of.
	Functions int
	// Unsupported is how many states need rules that rows cannot hold; None stands for them.
	Unsupported int
}

// Limits on files, which belong to the target: far above any real one.
const (
	maxSection = 1 << 29 // bytes of .eh_frame
	maxSpan    = 1 << 32 // bytes of file from the first to the last code
)

// ErrNoFrames says that a file has no call frame information.
var ErrNoFrames = errors.New("no .eh_frame section: compiled without unwind tables")

// Build makes the table of an ELF file, whose bytes are read from file and are size long. The
// error wraps ErrNoFrames when the file has nothing to make one of.
func Build(headers *elf.File, file io.ReaderAt, size int64) (*Table, error) {
	image, err := newImage(headers, file, size)
	if err != nil {
		return nil, err
	}
	b := &builder{image: image}
	b.collect()
	if len(b.functions) == 0 {
		return nil, ErrNoFrames
	}
	b.build()
	return b.table, nil
}

// Find returns the row for a place in the file.
func (t *Table) Find(offset uint64) Row {
	if offset < t.Start {
		return 0
	}
	bucket := (offset - t.Start) >> BucketShift
	if bucket+1 >= uint64(len(t.Buckets)) {
		return 0
	}
	rows := t.Rows[t.Buckets[bucket]:t.Buckets[bucket+1]]
	within := int(offset & (bucketBytes - 1))
	i := sort.Search(len(rows), func(i int) bool { return rows[i].offset() > within })
	return rows[i-1]
}

// function is an entry, its code given as file offsets.
type function struct {
	start, end uint64
	segment    *segment
	entry      fde
}

// builder makes a table of an image.
type builder struct {
	image     *image
	functions []function
	table     *Table
	last      Row // the row at the end of what has been written
}

// collect takes in the functions that lie in the file's code, ordered by place.
func (b *builder) collect() {
	b.image.frames.entries(func(entry fde) {
		// Entries of functions that the linker dropped point nowhere.
		for i := range b.image.code {
			s := &b.image.code[i]
			if entry.start >= s.address && entry.start < s.address+s.size {
				start := s.offset + entry.start - s.address
				end := s.offset + min(entry.end-s.address, s.size)
				b.functions = append(b.functions, function{start: start, end: end, segment: s, entry: entry})
				return
			}
		}
	})
	slices.SortStableFunc(b.functions, func(x, y function) int { return cmp.Compare(x.start, y.start) })
}

// padding is the most bytes between two functions that count as padding, which never runs
// and needs no rows of its own.
const padding = 16

// build writes the rows of all functions in order.
func (b *builder) build() {
	first, end := b.image.span()
	start := first &^ (bucketBytes - 1)
	buckets := (end - start + bucketBytes - 1) >> BucketShift
	b.table = &Table{Start: start, Functions: len(b.functions)}
	b.table.Buckets = make([]uint32, 0, buckets+1)
	b.table.Rows = make([]Row, 0, len(b.functions)*4+int(buckets))
	for i := range b.functions {
		limit := end
		if i+1 < len(b.functions) {
			limit = b.functions[i+1].start
		}
		b.function(&b.functions[i], limit)
	}
	b.reach(end)
	for uint64(len(b.table.Buckets)) < buckets+1 {
		b.open()
	}
	b.table.Buckets[buckets] = uint32(len(b.table.Rows))
}

// function writes the rows of one function, up to the next one at limit at most.
func (b *builder) function(f *function, limit uint64) {
	end := min(f.end, limit)
	if f.start >= end {
		return
	}
	run := interpreter{common: f.entry.common, machine: b.image.frames.machine, order: b.image.frames.order}
	run.state = f.entry.common.initial
	base := f.segment.offset - f.segment.address
	ok := run.execute(f.entry.code, f.entry.start, func(from uint64) { b.state(&run, from+base, end) })
	if ok {
		b.state(&run, run.pc+base, end)
	} else {
		b.write(run.pc+base, end, 0)
	}
	if limit > end && limit-end >= padding {
		b.write(end, limit, 0)
	}
}

// state writes the row of the interpreter's state from a place on.
func (b *builder) state(run *interpreter, from, end uint64) {
	row, ok := Row(0), false
	if run.common.signal {
		row, ok = makeRow(Signal, 0, 0, 0)
	} else {
		row, ok = run.machine.reduce(run)
	}
	if !ok {
		row = 0
		b.table.Unsupported++
	}
	b.write(from, end, row)
}

// write lets a row hold from a place on. Places come in order, but for the rows of malformed
// entries, which are left out; a second row for one place replaces the first.
func (b *builder) write(from, end uint64, row Row) {
	if from >= end || from < b.table.Start {
		return
	}
	if row == b.last {
		return
	}
	b.reach(from)
	bucket := (from - b.table.Start) >> BucketShift
	if bucket+1 != uint64(len(b.table.Buckets)) {
		return
	}
	within := int(from & (bucketBytes - 1))
	last := len(b.table.Rows) - 1
	switch at := b.table.Rows[last].offset(); {
	case at > within:
		return
	case at == within:
		b.table.Rows[last] = row.at(within)
	default:
		b.table.Rows = append(b.table.Rows, row.at(within))
	}
	b.last = row
}

// reach opens all buckets up to the one of a place.
func (b *builder) reach(place uint64) {
	bucket := (place - b.table.Start) >> BucketShift
	for uint64(len(b.table.Buckets)) <= bucket && len(b.table.Buckets) < cap(b.table.Buckets)-1 {
		b.open()
	}
}

// open begins the next bucket with the row that holds so far.
func (b *builder) open() {
	b.table.Buckets = append(b.table.Buckets, uint32(len(b.table.Rows)))
	if len(b.table.Buckets) < cap(b.table.Buckets) {
		b.table.Rows = append(b.table.Rows, b.last)
	}
}
