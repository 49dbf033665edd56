package symbolize

import (
	"fmt"

	"memtrace/symbolize/unwind"
)

// UnwindTable makes the table by which stacks are walked through the file's code.
func (f *File) UnwindTable() (table *unwind.Table, err error) {
	err = guard("call frame information", func() (err error) {
		table, err = unwind.Build(f.elf, f.reader, f.size)
		return err
	})
	return table, err
}

// UnwindTable makes the table of the file behind one of the Mappings.
func (s *Symbolizer) UnwindTable(m Mapping) (*unwind.Table, error) {
	file := s.fileBehind(m)
	if file == nil {
		return nil, fmt.Errorf("make the unwind table of %s: no ELF file is mapped there", m.Path)
	}
	table, err := file.UnwindTable()
	if err != nil {
		return nil, fmt.Errorf("make the unwind table of %s: %w", m.Path, err)
	}
	return table, nil
}
