package heap

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageForeign = 1 << 61 // of a file, or shared; in private anonymous memory: the huge page of zeros
	pageFrame   = 1<<55 - 1
)

// residency tells of each page of one region of private anonymous memory whether it is in
// memory. Pages that only show the kernel's shared pages of zeros do not count: they cost nothing.
type residency struct {
	start, end uint64 // page-aligned
	page       uint64 // bytes in a page
	present    []uint64
	swapped    uint64 // bytes
}

// pagemap reads the residency of a process's regions.
type pagemap struct {
	file     *os.File
	page     uint64
	zeroPage uint64 // frame of the shared page of zeros, 0 when the kernel hides frames
	buffer   []byte
}

// openPagemap opens the process's page map and learns which frame holds the zeros.
func openPagemap(pid int) (*pagemap, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return nil, fmt.Errorf("read which pages are resident (root or the target's user may): %w", err)
	}
	page := uint64(os.Getpagesize())
	return &pagemap{file: file, page: page, zeroPage: zeroFrame(page), buffer: make([]byte, 64<<10)}, nil
}

func (m *pagemap) Close() error { return m.file.Close() }

// zeroFrame maps a page of its own, reads it, and looks up the frame that the kernel put
// there: the one shared page of zeros.
func zeroFrame(page uint64) uint64 {
	mapping, err := unix.Mmap(-1, 0, int(page), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0
	}
	defer unix.Munmap(mapping)
	if mapping[0] != 0 {
		return 0
	}
	own, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return 0
	}
	defer own.Close()
	var entry [8]byte
	if _, err := own.ReadAt(entry[:], int64(uint64(uintptr(unsafe.Pointer(&mapping[0])))/page*8)); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(entry[:]) & pageFrame
}

// maxRegion bounds one region: its record takes 1/32768 of it, and reading it about 1 s.
const maxRegion = 1 << 40

// region reads the residency of [start, end).
func (m *pagemap) region(start, end uint64) (*residency, error) {
	if end > start && end-start > maxRegion {
		return nil, fmt.Errorf("the region at %#x is too large to look at: %d bytes", start, end-start)
	}
	r := newResidency(start, end, m.page)
	pages := (r.end - r.start) / m.page
	for index := uint64(0); index < pages; {
		count := min(pages-index, uint64(len(m.buffer)/8))
		entries := m.buffer[:count*8]
		n, err := m.file.ReadAt(entries, int64((r.start/m.page+index)*8))
		if n < len(entries) {
			if n == 0 && err == nil || os.IsNotExist(err) || n == 0 {
				return nil, ErrGone
			}
			return nil, fmt.Errorf("read the page map at %#x: %w", r.start+index*m.page, err)
		}
		for i := uint64(0); i < count; i++ {
			entry := binary.LittleEndian.Uint64(entries[i*8:])
			switch {
			case entry&pageSwapped != 0:
				r.swapped += m.page
			case entry&(pagePresent|pageForeign) == pagePresent && (m.zeroPage == 0 || entry&pageFrame != m.zeroPage):
				r.mark(index + i)
			}
		}
		index += count
	}
	return r, nil
}

// newResidency returns a record of no page present for the pages that [start, end) touches.
func newResidency(start, end, page uint64) *residency {
	start, end = start&^(page-1), (end+page-1)&^(page-1)
	end = max(start, end)
	return &residency{start: start, end: end, page: page, present: make([]uint64, ((end-start)/page+63)/64)}
}

func (r *residency) mark(page uint64) { r.present[page/64] |= 1 << (page % 64) }

func (r *residency) has(page uint64) bool { return r.present[page/64]&(1<<(page%64)) != 0 }

// bytes returns how many bytes of [start, end) lie in resident pages.
func (r *residency) bytes(start, end uint64) uint64 {
	start, end = max(start, r.start), min(end, r.end)
	if start >= end {
		return 0
	}
	first, last := (start-r.start)/r.page, (end-1-r.start)/r.page
	var sum uint64
	if first == last {
		if r.has(first) {
			sum = end - start
		}
		return sum
	}
	if r.has(first) {
		sum += r.page - (start-r.start)%r.page
	}
	if r.has(last) {
		sum += (end-1-r.start)%r.page + 1
	}
	return sum + r.count(first+1, last)*r.page
}

// count returns how many of the pages from first to before last are resident.
func (r *residency) count(first, last uint64) uint64 {
	var sum uint64
	for first < last {
		word, shift := r.present[first/64]>>(first%64), 64-first%64
		if span := last - first; span < shift {
			word &= 1<<span - 1
			shift = span
		}
		sum += uint64(bits.OnesCount64(word))
		first += shift
	}
	return sum
}

// run returns how much of [address, address+length) can be read without touching a page
// that is not resident.
func (r *residency) run(address, length uint64) uint64 {
	if r == nil {
		return length
	}
	if address < r.start || address >= r.end {
		return 0
	}
	end := min(address+length, r.end)
	for page := (address - r.start) / r.page; r.start+page*r.page < end; page++ {
		if !r.has(page) {
			stop := r.start + page*r.page
			return stop - min(stop, address)
		}
	}
	return end - address
}
