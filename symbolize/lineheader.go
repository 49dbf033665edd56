package symbolize

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Limits of the paths that one line table refers to, in bytes.
const (
	maxLineStrings = 64 << 20
	maxLinePaths   = 1 << 30 // if each was as long as the longest
)

var errLineHeader = errors.New("malformed header of a line table")

// The forms that a line table's header may use for its directories and files (DWARF 5,
// section 6.2.4.1), by how the length of a value is told.
const (
	formBlock    = 0x09
	formData1    = 0x0b
	formData2    = 0x05
	formData4    = 0x06
	formData8    = 0x07
	formData16   = 0x1e
	formString   = 0x08
	formStrp     = 0x0e
	formUdata    = 0x0f
	formLineStrp = 0x1f
)

// checkLineHeader refuses a line table that would make debug/dwarf allocate without bound:
// one whose DWARF 5 header counts more directories or files than it holds, and one whose
// paths would be long when they are joined. directory is the unit's own.
func (d *debugInfo) checkLineHeader(offset int64, directory string) error {
	section := d.data(".debug_line")
	if offset < 0 || offset > int64(len(section)) {
		return errLineHeader
	}
	h := byteReader{data: section[offset:]}
	length, word := uint64(h.uint32()), 4
	if length == math.MaxUint32 {
		length, word = h.uint64(), 8
	}
	h.data = h.data[:min(uint64(len(h.data)), length)]
	version := h.uint16()
	if version >= 5 {
		h.skip(2) // sizes of address and segment
	}
	h.skip(uint64(word)) // length of the header
	h.skip(4)            // instruction length, is_stmt, line base, line range
	if version >= 4 {
		h.skip(1) // operations of an instruction
	}
	opcodes := h.uint8()
	h.skip(uint64(max(opcodes, 1)) - 1)
	lists := lineLists{info: d, reader: &h, word: word, left: maxLineStrings}
	if err := lists.check(version); err != nil {
		return err
	}
	// The program itself can add files, each with an opcode 3.
	files := lists.entries + uint64(bytes.Count(h.data, []byte{3}))
	if longest := lists.longest + uint64(len(directory)); longest > 0 && files > maxLinePaths/longest {
		return fmt.Errorf("paths of the line table: %w", errLimit)
	}
	return nil
}

// lineLists walks over the directories and files of a line table.
type lineLists struct {
	info    *debugInfo
	reader  *byteReader
	word    int    // bytes of an offset
	left    uint64 // bytes of strings that are still allowed
	entries uint64 // directories and files seen
	longest uint64 // bytes of the longest string
}

func (l *lineLists) check(version uint16) error {
	for _, files := range []bool{false, true} {
		var err error
		if version >= 5 {
			err = l.described()
		} else {
			err = l.terminated(files)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// described walks over a list of DWARF 5: the formats of an entry, their number, the entries.
func (l *lineLists) described() error {
	forms := make([]uint64, l.reader.uint8())
	for i := range forms {
		l.reader.uvarint() // what the value means
		forms[i] = l.reader.uvarint()
	}
	count := l.reader.uvarint()
	if l.reader.failed || count > uint64(len(l.reader.data)) || (len(forms) == 0 && count > 0) {
		return errLineHeader
	}
	for range count {
		for _, form := range forms {
			if err := l.note(l.info.skipLineForm(l.reader, form, l.word)); err != nil {
				return err
			}
		}
	}
	l.entries += count
	return nil
}

// terminated walks over a list of older versions, which ends with an empty string; the
// name of a file is followed by three numbers.
func (l *lineLists) terminated(files bool) error {
	for {
		length := l.reader.cstring()
		if err := l.note(length); err != nil {
			return err
		}
		if length <= 1 {
			return nil
		}
		l.entries++
		if files {
			l.reader.uvarint()
			l.reader.uvarint()
			l.reader.uvarint()
		}
	}
}

// note accounts for a string of the length.
func (l *lineLists) note(length uint64) error {
	if l.reader.failed {
		return errLineHeader
	}
	if length > l.left {
		return fmt.Errorf("strings of the line table: %w", errLimit)
	}
	l.left -= length
	l.longest = max(l.longest, length)
	return nil
}

// skipLineForm skips one value and returns the bytes of the string it stands for.
func (d *debugInfo) skipLineForm(h *byteReader, form uint64, word int) uint64 {
	switch form {
	case formString:
		return h.cstring()
	case formStrp:
		return stringLength(d.data(".debug_str"), h.word(word))
	case formLineStrp:
		return stringLength(d.data(".debug_line_str"), h.word(word))
	case formUdata:
		h.uvarint()
	case formData1:
		h.skip(1)
	case formData2:
		h.skip(2)
	case formData4:
		h.skip(4)
	case formData8:
		h.skip(8)
	case formData16:
		h.skip(16)
	case formBlock:
		h.skip(h.uvarint())
	default:
		h.failed = true
	}
	return 1
}

// stringLength returns how long the text at an offset is.
func stringLength(data []byte, offset uint64) uint64 {
	r := byteReader{data: data}
	r.skip(offset)
	return r.cstring()
}
