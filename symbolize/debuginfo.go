package symbolize

import (
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
)

// Limits of debug information.
const (
	maxUnits       = 1 << 20
	maxAbbreviated = 1 << 20  // bytes of one unit's abbreviations; real ones have some 10 KiB
	maxRangeLists  = 32 << 20 // bytes of .debug_ranges and .debug_rnglists that are believed
	maxOpened      = 16       // units open for the names that others refer to
	maxUnitCost    = 32 << 20 // bytes of decoded units kept
)

// debugInfo is the DWARF of one file. Its units are found by their headers and decoded one
// by one: debug/dwarf is shown a single unit at a time (see open), because it would
// otherwise decode the abbreviations of every unit of a large program first.
type debugInfo struct {
	file          *File // that holds the sections
	code          func(address uint64) bool
	sections      map[string]*sectionBytes
	units         []unitHeader // in order of their offsets
	ranges        []unitRange  // by address
	scanned       bool         // ranges holds the units that .debug_aranges leaves out too
	decoded       map[int]*unitTable
	order         []int               // of decoded, the oldest first
	opened        map[int]*dwarf.Data // units that were asked for a name by another unit
	alternate     *debugInfo          // see alternateInfo, once alternateDone
	alternateDone bool
	head          [headRoom]byte // the true first bytes of .debug_info
	work          int64          // done so far, as in maxFileWork
	broken        bool           // a unit was hostile: nothing more is asked of this file
}

// unitHeader is where a unit lies in .debug_info.
type unitHeader struct {
	offset, end uint64
	first       uint64 // offset of its first entry
	version     uint16
	abbrev      uint64 // offset of its abbreviations
}

// unitRange says that the addresses [low, high) belong to a unit.
type unitRange struct {
	low, high uint64
	unit      int
}

// headRoom is what a unit's header takes: DWARF 5's, in its 32-bit form.
const headRoom = 12

// The kinds of units that DWARF 5 tells apart (section 7.5.1).
const (
	dwarfUnitCompile      byte = 1
	dwarfUnitType         byte = 2
	dwarfUnitSkeleton     byte = 4
	dwarfUnitSplitCompile byte = 5
	dwarfUnitSplitType    byte = 6
)

// openDebugInfo finds the units of a file; an error when it has no debug information. code
// says whether an address belongs to the program: what the linker threw away is left in the
// debug information with addresses that do not.
func openDebugInfo(file *File, code func(uint64) bool) (*debugInfo, error) {
	d := &debugInfo{file: file, code: code, sections: map[string]*sectionBytes{}, decoded: map[int]*unitTable{}, opened: map[int]*dwarf.Data{}}
	err := guard("debug information", func() error {
		if err := d.openSections(); err != nil {
			return err
		}
		copy(d.head[:], d.data(".debug_info"))
		if err := d.findUnits(); err != nil {
			return err
		}
		d.ranges = sortedRanges(d.readARanges())
		d.release()
		return nil
	})
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// openSections makes the sections accessible.
func (d *debugInfo) openSections() error {
	unpacked := int64(0)
	for _, name := range []string{".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".debug_line_str",
		".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		section, err := d.file.debugSection(name)
		if err != nil {
			return err
		}
		d.sections[name] = &section
		if unpacked += section.cost(); unpacked > maxUnpacked {
			return fmt.Errorf("section %s: %w", name, errLimit)
		}
	}
	if len(d.data(".debug_info")) < headRoom {
		return errors.New("none")
	}
	return checkStrings(d.data(".debug_str"))
}

func (d *debugInfo) data(section string) []byte { return d.sections[section].data }

// rangeLists returns as much of a section of range lists as is believed: one list may name
// the whole section, and that for every function.
func (d *debugInfo) rangeLists(section string) []byte {
	data := d.data(section)
	return data[:min(len(data), maxRangeLists)]
}

// close gives the memory back.
func (d *debugInfo) close() {
	for _, s := range d.sections {
		s.close()
	}
	if d.alternate != nil {
		file := d.alternate.file
		d.alternate.close()
		file.Close()
	}
	*d = debugInfo{broken: true}
}

// release keeps the pages of the file that were touched from counting as our memory.
func (d *debugInfo) release() {
	for _, s := range d.sections {
		s.release()
	}
}

// cost is the memory held, in bytes.
func (d *debugInfo) cost() int64 {
	total := int64(len(d.units)*32 + len(d.ranges)*24)
	for _, s := range d.sections {
		total += s.cost()
	}
	for _, u := range d.decoded {
		total += u.cost()
	}
	if d.alternate != nil {
		total += d.alternate.cost()
	}
	return total
}

// findUnits walks over the units by their lengths and reads nothing but the headers.
func (d *debugInfo) findUnits() error {
	info := d.data(".debug_info")
	if len(info) > math.MaxUint32 {
		return fmt.Errorf("section .debug_info: %d bytes: %w", len(info), errLimit)
	}
	for at := uint64(0); at+headRoom <= uint64(len(info)); {
		if len(d.units) == maxUnits {
			return fmt.Errorf("more than %d units: %w", maxUnits, errLimit)
		}
		u, ok := readUnitHeader(info[at:], at)
		if !ok {
			return fmt.Errorf("unit at %#x reaches beyond the section", at)
		}
		d.units = append(d.units, u)
		at = u.end
	}
	return nil
}

// readUnitHeader decodes the header of the unit at an offset; false when it cannot be.
func readUnitHeader(data []byte, offset uint64) (unitHeader, bool) {
	little := binary.LittleEndian
	length, size, word := uint64(little.Uint32(data)), uint64(4), uint64(4)
	if length == math.MaxUint32 { // the 64-bit form
		if len(data) < 12 {
			return unitHeader{}, false
		}
		length, size, word = little.Uint64(data[4:]), 12, 8
	}
	const longest = 28 // version, kind, address size, two words, type signature
	if length > uint64(len(data))-size {
		return unitHeader{}, false
	}
	fields := make([]byte, longest)
	copy(fields, data[size:size+length])
	u := unitHeader{offset: offset, end: offset + size + length, version: little.Uint16(fields)}
	at := uint64(2)
	kind := dwarfUnitCompile
	if u.version >= 5 {
		kind, at = fields[2], 4 // the size of an address comes next
	}
	if word == 8 {
		u.abbrev = little.Uint64(fields[at:])
	} else {
		u.abbrev = uint64(little.Uint32(fields[at:]))
	}
	at += word
	if u.version < 5 {
		at++ // the size of an address
	}
	switch kind {
	case dwarfUnitSkeleton, dwarfUnitSplitCompile:
		at += 8
	case dwarfUnitType, dwarfUnitSplitType:
		at += 8 + word
	}
	u.first = offset + size + at
	return u, at < length
}

// unitOf returns the index of the unit that an offset lies in; -1 when none does.
func (d *debugInfo) unitOf(offset uint64) int {
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].end > offset })
	if i < len(d.units) && d.units[i].offset <= offset {
		return i
	}
	return -1
}

// openCached is open for a unit that is likely to be asked again soon.
func (d *debugInfo) openCached(index int) (*dwarf.Data, error) {
	if data, ok := d.opened[index]; ok {
		return data, nil
	}
	data, err := d.open(index)
	if err != nil {
		return nil, err
	}
	if len(d.opened) >= maxOpened {
		clear(d.opened)
	}
	d.opened[index] = data
	return data, nil
}

// open shows one unit to debug/dwarf, at its true offset so that references between units
// keep their meaning: what lies before it is made one opaque unit by a header written over
// the first bytes (of the private copy), and the section is cut off behind it.
func (d *debugInfo) open(index int) (*dwarf.Data, error) {
	u := d.units[index]
	info := d.data(".debug_info")
	copy(info, d.head[:])
	if u.offset > 0 {
		if u.offset < headRoom {
			return nil, errors.New("unit too short")
		}
		if u.version < 2 || u.version > 5 || u.abbrev > math.MaxUint32 {
			return nil, fmt.Errorf("unit of DWARF version %d", u.version)
		}
		little := binary.LittleEndian
		little.PutUint32(info, uint32(u.offset-4))
		little.PutUint16(info[4:], u.version)
		if u.version >= 5 {
			info[6], info[7] = dwarfUnitCompile, 8 // with addresses of 8 bytes
			little.PutUint32(info[8:], uint32(u.abbrev))
		} else {
			little.PutUint32(info[6:], uint32(u.abbrev))
			info[10] = 8
		}
	}
	abbrev := d.data(".debug_abbrev")
	abbrev = abbrev[:min(uint64(len(abbrev)), u.abbrev+maxAbbreviated)]
	if err := checkAbbreviations(abbrev, u.abbrev); err != nil {
		return nil, err
	}
	data, err := dwarf.New(abbrev, nil, nil, info[:u.end], d.data(".debug_line"), nil,
		d.rangeLists(".debug_ranges"), d.data(".debug_str"))
	if err != nil {
		return nil, err
	}
	for name, contents := range map[string][]byte{
		".debug_addr": d.data(".debug_addr"), ".debug_line_str": d.data(".debug_line_str"),
		".debug_str_offsets": d.data(".debug_str_offsets"), ".debug_rnglists": d.rangeLists(".debug_rnglists"),
	} {
		if len(contents) > 0 {
			if err := data.AddSection(name, contents); err != nil {
				return nil, err
			}
		}
	}
	return data, nil
}
