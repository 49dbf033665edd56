package symbolize

import (
	"debug/dwarf"
	"errors"
	"fmt"
)

// maxUnitWork and maxFileWork bound the effort for one unit and for one file: entries, their
// attributes, the bytes of their strings. A unit of 50 MB takes about half of it; a hostile
// one asks for any amount, because thousands of entries can share one string or list.
const (
	maxUnitWork = 1 << 28
	maxFileWork = 1 << 32
)

// unitTable is what one unit says about addresses.
type unitTable struct {
	lines  lineTable
	scopes []scope // functions and inlined calls; see scopes.go
}

func (u *unitTable) cost() int64 { return u.lines.cost() + int64(len(u.scopes))*scopeCost }

// position is one level of what the source says about an address, the innermost first.
type position struct {
	function string // "" when the debug information does not name it
	file     string
	line     int
	inlined  bool // the function's body stands in the next position's function
}

// positions returns the source lines of an address: one, and one more for every function
// that is inlined there. nil: the debug information does not know the address.
func (d *debugInfo) positions(address uint64) []position {
	if d.broken || d.work > maxFileWork {
		return nil
	}
	index := d.unitAt(address)
	if index < 0 {
		return nil
	}
	u := d.unit(index)
	if u == nil {
		return nil
	}
	file, line, _ := u.lines.at(address)
	chain := scopesAt(u.scopes, address)
	if len(chain) == 0 {
		if file == "" {
			return nil
		}
		return []position{{file: file, line: line}}
	}
	positions := make([]position, len(chain))
	for i, s := range chain {
		positions[i] = position{function: s.name, file: file, line: line, inlined: s.inlined}
		file, line = u.lines.file(s.callFile), int(s.callLine)
	}
	return positions
}

// unit returns the decoded unit; nil when it cannot be decoded.
func (d *debugInfo) unit(index int) *unitTable {
	if u, ok := d.decoded[index]; ok {
		return u
	}
	var u *unitTable
	err := guard("unit", func() (err error) {
		u, err = d.decode(index)
		return err
	})
	if errors.Is(err, errLimit) {
		d.broken = true
	}
	if err != nil {
		u = &unitTable{}
	}
	d.release()
	d.decoded[index] = u
	d.order = append(d.order, index)
	d.evict()
	return u
}

// evict forgets the oldest units when they take too much memory, but never the newest.
func (d *debugInfo) evict() {
	total := int64(0)
	for _, u := range d.decoded {
		total += u.cost()
	}
	for total > maxUnitCost && len(d.order) > 1 {
		oldest := d.order[0]
		total -= d.decoded[oldest].cost()
		delete(d.decoded, oldest)
		d.order = d.order[1:]
	}
}

// root returns a reader that stands behind the unit's first entry, and that entry.
func (d *debugInfo) root(data *dwarf.Data, index int) (*dwarf.Reader, *dwarf.Entry, error) {
	reader := data.Reader()
	reader.Seek(dwarf.Offset(d.units[index].first))
	entry, err := reader.Next()
	if err == nil && entry == nil {
		err = fmt.Errorf("unit at %#x: empty", d.units[index].offset)
	}
	return reader, entry, err
}

// decode reads the whole unit once.
func (d *debugInfo) decode(index int) (*unitTable, error) {
	data, err := d.open(index)
	if err != nil {
		return nil, err
	}
	reader, root, err := d.root(data, index)
	if err != nil {
		return nil, err
	}
	u := &unitTable{}
	u.lines, err = d.readLines(data, root)
	if errors.Is(err, errLimit) {
		return nil, err
	} // a malformed line table leaves the functions
	walk := scopeWalk{info: d, data: data, left: maxUnitWork, rootCost: entryCost(root)}
	u.scopes, err = walk.run(reader, root)
	d.work += maxUnitWork - walk.left
	return u, err
}

// positions returns the source lines of a virtual address, as debugInfo.positions does, from
// the file's own debug information or its separate debug file's.
func (f *File) positions(address uint64) []position {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.linesDone {
		f.linesDone = true
		for _, holder := range []*File{f, f.debugFile()} {
			if holder == nil || holder.elf.Section(".debug_info") == nil {
				continue
			}
			if lines, err := openDebugInfo(holder, f.loaded); err == nil {
				f.lines = lines
				break
			}
		}
	}
	if f.lines == nil {
		return nil
	}
	return f.lines.positions(address)
}
