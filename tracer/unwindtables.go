package tracer

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"memtrace/bpf"
	"memtrace/symbolize"
	"memtrace/symbolize/unwind"
)

// unwindSource is a process as far as the unwinder needs it; a Symbolizer is one.
type unwindSource interface {
	// Mappings returns what is mapped, in the order of addresses.
	Mappings() []symbolize.Mapping
	// UnwindTable makes the table of the file behind one of the mappings.
	UnwindTable(symbolize.Mapping) (*unwind.Table, error)
}

// unwindTables keeps the tables that the kernel half walks stacks by (bpf/unwind.h): one for
// each file, shared by all its mappings in all processes, and for each process, in its space,
// the list of its executable mappings. It is safe for use by several goroutines.
//
// A changed list is written beside the old one and takes its place in one store, so that a
// walk sees one or the other. What is no longer needed is given away only after all walks
// that could have seen it have ended.
type unwindTables struct {
	mutex    sync.Mutex
	files    map[fileID]*fileTable
	listed   map[uint32]spaceList
	spaces   mapArray[uint64]
	mappings mapArray[bpf.SharedUnwindMapping]
	buckets  mapArray[uint64]
	rows     mapArray[uint64]

	mappingPlaces, bucketPlaces, rowPlaces extents

	refused uint64 // rows and mappings that did not fit
}

// fileID tells files apart.
type fileID struct {
	dev, inode uint64
	vdso       bool
}

// fileTable is one file's table.
type fileTable struct {
	table   *unwind.Table // nil: the file has none
	placed  bool          // the table is in the maps
	buckets extent
	rows    extent
}

// spaceList is what a space shows now.
type spaceList struct {
	mappings   []bpf.SharedUnwindMapping
	places     extent
	generation uint64
	files      []fileID
}

// unwindCapacity is how much the unwinder's maps hold.
type unwindCapacity struct{ mappings, buckets, rows uint32 }

// Room beyond what a process needs at first, for libraries that it loads later and for
// programs that its children execute.
const (
	spareMappings = 2048
	spareBuckets  = 64 << 10 // 16 MiB of code
	spareRows     = 512 << 10
)

// newUnwindTables makes the tables of all files that a process has mapped. They are put into
// the maps later: their size decides that of the maps.
func newUnwindTables(source unwindSource) *unwindTables {
	t := &unwindTables{files: map[fileID]*fileTable{}, listed: map[uint32]spaceList{}}
	t.read(source, source.Mappings())
	return t
}

// capacity returns how large the maps must be for the tables made so far, with room for more.
func (t *unwindTables) capacity(source unwindSource) unwindCapacity {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	c := unwindCapacity{mappings: spareMappings, buckets: spareBuckets, rows: spareRows}
	for _, m := range source.Mappings() {
		if m.Exec {
			c.mappings += 2 // a changed list stands beside the old one
		}
	}
	for _, f := range t.files {
		if f.table != nil {
			c.buckets += uint32(len(f.table.Buckets))
			c.rows += uint32(len(f.table.Rows))
		}
	}
	return c
}

// open takes hold of the maps.
func (t *unwindTables) open(maps *bpf.SharedMaps) (err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.spaces, err = openMapArray[uint64](maps.UnwindSpaces); err != nil {
		return err
	}
	if t.mappings, err = openMapArray[bpf.SharedUnwindMapping](maps.UnwindMappings); err != nil {
		return err
	}
	if t.buckets, err = openMapArray[uint64](maps.UnwindBuckets); err != nil {
		return err
	}
	if t.rows, err = openMapArray[uint64](maps.UnwindRows); err != nil {
		return err
	}
	t.mappingPlaces.size = uint32(len(t.mappings.values))
	t.bucketPlaces.size = uint32(len(t.buckets.values))
	t.rowPlaces.size = uint32(len(t.rows.values))
	return nil
}

// Update brings a space up to the mappings that its process has now. It may be called at any
// time while stacks are walked, and costs little when nothing has changed.
func (t *unwindTables) Update(space uint32, source unwindSource) error {
	mappings := source.Mappings()
	t.read(source, mappings)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if int(space) >= len(t.spaces.values) {
		t.refused++
		return fmt.Errorf("no room for the mappings of process %d: at most %d are followed", space, len(t.spaces.values))
	}
	next := t.list(mappings)
	last := t.listed[space]
	if sameMappings(next.mappings, last.mappings) {
		return nil
	}
	return t.publish(space, next, last)
}

// read makes the tables of files that are new, several at a time.
func (t *unwindTables) read(source unwindSource, mappings []symbolize.Mapping) {
	fresh := make(chan func())
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for work := range fresh {
				work()
			}
		})
	}
	for _, m := range mappings {
		id, isFile := fileOf(m)
		if !m.Exec || !isFile {
			continue
		}
		t.mutex.Lock()
		_, known := t.files[id]
		if !known {
			t.files[id] = &fileTable{}
		}
		t.mutex.Unlock()
		if known {
			continue
		}
		fresh <- func() {
			// A file without a table is walked by the frame pointer, and the stack marked.
			table, err := source.UnwindTable(m)
			if err != nil {
				return
			}
			t.mutex.Lock()
			t.files[id].table = table
			t.mutex.Unlock()
		}
	}
	close(fresh)
	working.Wait()
}

// fileOf returns what names the file behind a mapping.
func fileOf(m symbolize.Mapping) (fileID, bool) {
	if m.Path == "[vdso]" {
		return fileID{vdso: true}, true
	}
	return fileID{dev: m.Dev, inode: m.Inode}, m.FileBacked()
}

// list makes the list of a process's executable mappings. The lock is held.
func (t *unwindTables) list(mappings []symbolize.Mapping) spaceList {
	const most = 1<<(spaceGenerationShift-spaceCountShift) - 1
	var l spaceList
	for _, m := range mappings {
		if !m.Exec || m.Path == "[vsyscall]" {
			continue
		}
		if len(l.mappings) == most {
			t.refused++
			break
		}
		entry := bpf.SharedUnwindMapping{Start: m.Start, End: m.End}
		id, isFile := fileOf(m)
		if f := t.files[id]; isFile && f != nil && t.place(f) {
			entry.Bias = m.Start - m.Offset + f.table.Start
			entry.FirstBucket, entry.Buckets = f.buckets.first, f.buckets.count
			l.files = append(l.files, id)
		}
		l.mappings = append(l.mappings, entry)
	}
	return l
}

// bucketCountShift is BUCKET_COUNT_SHIFT of bpf/unwind.h.
const bucketCountShift = 32

// place puts a file's table into the maps; false when it has none, or there is no room. The
// lock is held.
func (t *unwindTables) place(f *fileTable) bool {
	if f.table == nil || f.placed {
		return f.placed
	}
	buckets, rows := f.table.Buckets, f.table.Rows
	count := uint32(len(buckets) - 1)
	var fits bool
	if f.buckets, fits = t.bucketPlaces.take(count); !fits {
		t.refused += uint64(len(rows))
		return false
	}
	if f.rows, fits = t.rowPlaces.take(uint32(len(rows))); !fits {
		t.bucketPlaces.give(f.buckets)
		t.refused += uint64(len(rows))
		return false
	}
	for i, row := range rows {
		t.rows.values[int(f.rows.first)+i] = uint64(row)
	}
	for i := range int(count) {
		first := uint64(f.rows.first + buckets[i])
		t.buckets.values[int(f.buckets.first)+i] = first | uint64(buckets[i+1]-buckets[i])<<bucketCountShift
	}
	// The rows are in the maps now and are needed nowhere else.
	f.table.Rows, f.table.Buckets, f.placed = nil, nil, true
	return true
}

// SPACE_COUNT_SHIFT and SPACE_GENERATION_SHIFT of bpf/unwind.h.
const (
	spaceCountShift      = 24
	spaceGenerationShift = 40
)

// publish lets a space show another list. The lock is held.
func (t *unwindTables) publish(space uint32, next, last spaceList) error {
	var fits bool
	next.places, fits = t.mappingPlaces.take(uint32(len(next.mappings)))
	if !fits {
		t.refused += uint64(len(next.mappings))
		return errors.New("no room for the target's mappings: stacks through new libraries will be cut short")
	}
	copy(t.mappings.values[next.places.first:], next.mappings)
	next.generation = last.generation + 1
	word := uint64(next.places.first) | uint64(len(next.mappings))<<spaceCountShift | next.generation<<spaceGenerationShift
	atomic.StoreUint64(&t.spaces.values[space], word)
	t.listed[space] = next
	if last.places.count > 0 {
		awaitWalks()
		t.mappingPlaces.give(last.places)
	}
	return nil
}

// awaitWalks returns when all programs that ran when it was called have ended: the kernel
// runs them inside read sections, whose end this system call awaits.
func awaitWalks() {
	const global = 1 // MEMBARRIER_CMD_GLOBAL of linux/membarrier.h
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); errno != 0 {
		// Kernels with nohz_full processors refuse. No walk takes this long.
		time.Sleep(100 * time.Millisecond)
	}
}

// sameMappings tells whether two lists are equal.
func sameMappings(a, b []bpf.SharedUnwindMapping) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// lost returns how many rows and mappings did not fit into the maps.
func (t *unwindTables) lost() uint64 {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.refused
}

// close lets go of the maps' memory.
func (t *unwindTables) close() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return errors.Join(t.spaces.close(), t.mappings.close(), t.buckets.close(), t.rows.close())
}
