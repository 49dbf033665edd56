package symbolize

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
)

const maxLineRows = 2 << 20 // rows of one unit

// lineTable maps the addresses of one unit to lines.
type lineTable struct {
	rows  []lineRow // by address
	files []string  // by the numbers that DWARF uses
}

// lineRow holds from its address to the next row's.
type lineRow struct {
	address    uint64
	file, line int32 // file is endOfSequence where the code ends
}

const endOfSequence = -1

func (t *lineTable) cost() int64 {
	total := int64(len(t.rows)) * 16
	for _, f := range t.files {
		total += int64(len(f)) + 16
	}
	return total
}

// at returns the file and line of an address; false when the table does not cover it.
func (t *lineTable) at(address uint64) (string, int, bool) {
	i := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].address > address }) - 1
	if i < 0 || t.rows[i].file == endOfSequence {
		return "", 0, false
	}
	return t.file(t.rows[i].file), int(t.rows[i].line), true
}

// file returns the path of a file number; "" for one that the unit does not have.
func (t *lineTable) file(number int32) string {
	if number < 0 || int(number) >= len(t.files) {
		return ""
	}
	return t.files[number]
}

// readLines decodes the line number program of a unit. Its sequences come in any order.
func (d *debugInfo) readLines(data *dwarf.Data, root *dwarf.Entry) (lineTable, error) {
	offset, ok := root.Val(dwarf.AttrStmtList).(int64)
	if !ok {
		return lineTable{}, nil
	}
	directory, _ := root.Val(dwarf.AttrCompDir).(string)
	if err := d.checkLineHeader(offset, directory); err != nil {
		return lineTable{}, err
	}
	reader, err := data.LineReader(root)
	if err != nil || reader == nil {
		return lineTable{}, err
	}
	rows, err := d.readSequences(reader)
	if err != nil {
		return lineTable{}, err
	}
	return lineTable{rows: rows, files: filePaths(reader.Files(), directory)}, nil
}

// readSequences returns all rows in order of their addresses.
func (d *debugInfo) readSequences(reader *dwarf.LineReader) ([]lineRow, error) {
	numbers := fileNumbers{}
	var sequences [][]lineRow
	var current []lineRow
	for count := 0; ; count++ {
		var entry dwarf.LineEntry
		err := reader.Next(&entry)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if count == maxLineRows {
			return nil, fmt.Errorf("line table: %w", errLimit)
		}
		row := lineRow{address: entry.Address, file: numbers.of(reader, entry.File), line: int32(entry.Line)}
		if entry.EndSequence {
			row.file = endOfSequence
		}
		current = append(current, row)
		if entry.EndSequence {
			// What the linker threw away keeps its lines at an address of no code.
			if d.code(current[0].address) {
				sequences = append(sequences, current)
			}
			current = nil
		}
	}
	slices.SortFunc(sequences, func(a, b []lineRow) int { return cmp.Compare(a[0].address, b[0].address) })
	rows := slices.Concat(sequences...)
	slices.SortStableFunc(rows, func(a, b lineRow) int { return cmp.Compare(a.address, b.address) })
	return rows, nil
}

// fileNumbers finds the number of the file that a row of the line table refers to.
type fileNumbers map[*dwarf.LineFile]int32

func (n fileNumbers) of(reader *dwarf.LineReader, file *dwarf.LineFile) int32 {
	if file == nil {
		return 0
	}
	if number, ok := n[file]; ok {
		return number
	}
	for i, f := range reader.Files() {
		if _, known := n[f]; f != nil && !known {
			n[f] = int32(i)
		}
	}
	return n[file]
}

// filePaths makes the paths of a line table absolute where the unit's directory is known.
func filePaths(files []*dwarf.LineFile, directory string) []string {
	paths := make([]string, len(files))
	for i, f := range files {
		if f == nil || f.Name == "" {
			continue
		}
		paths[i] = f.Name
		if !path.IsAbs(f.Name) && directory != "" {
			paths[i] = path.Join(directory, f.Name)
		}
		paths[i] = path.Clean(paths[i])
	}
	return paths
}
