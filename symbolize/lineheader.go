package symbolize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// checkLineHeader refuses a DWARF 5 line table whose header counts more directories or files
// than it holds: debug/dwarf allocates whatever number stands there. Older versions end
// their lists with a zero byte and are safe.
func (d *debugInfo) checkLineHeader(offset int64) error {
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
	if h.uint16() < 5 {
		return nil
	}
	h.skip(2 + uint64(word)) // sizes of address and segment, length of the header
	h.skip(5)                // instruction length, operations, is_stmt, line base, line range
	opcodes := h.uint8()
	h.skip(uint64(max(opcodes, 1)) - 1)
	budget := uint64(maxUnitWork / 16)
	for _, list := range []string{"directories", "files"} {
		if err := d.checkLineList(&h, word, &budget); err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
	}
	return nil
}

// checkLineList walks over one list: the formats of an entry, the number of entries, the
// entries. budget bounds the bytes of the strings they refer to.
func (d *debugInfo) checkLineList(h *byteReader, word int, budget *uint64) error {
	forms := make([]uint64, h.uint8())
	for i := range forms {
		h.uvarint() // what the value means
		forms[i] = h.uvarint()
	}
	count := h.uvarint()
	if h.failed || count > uint64(len(h.data)) || (len(forms) == 0 && count > 0) {
		return errLineHeader
	}
	for range count {
		for _, form := range forms {
			cost := d.skipLineForm(h, form, word)
			if h.failed {
				return errLineHeader
			}
			if cost > *budget {
				return fmt.Errorf("strings: %w", errLimit)
			}
			*budget -= cost
		}
	}
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

// byteReader takes values off the front of data; failed says that there were too few.
type byteReader struct {
	data   []byte
	failed bool
}

func (r *byteReader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.failed, r.data = true, nil
		return make([]byte, min(n, 8))
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *byteReader) skip(n uint64)  { r.take(n) }
func (r *byteReader) uint8() uint8   { return r.take(1)[0] }
func (r *byteReader) uint16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *byteReader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *byteReader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// word reads an offset of the unit's form: 4 or 8 bytes.
func (r *byteReader) word(size int) uint64 {
	if size == 8 {
		return r.uint64()
	}
	return uint64(r.uint32())
}

func (r *byteReader) uvarint() uint64 {
	value, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return value
}

// cstring skips a text with its zero byte and returns their length.
func (r *byteReader) cstring() uint64 {
	for i, b := range r.data {
		if b == 0 {
			r.data = r.data[i+1:]
			return uint64(i) + 1
		}
	}
	n := uint64(len(r.data))
	r.failed, r.data = true, nil
	return n
}
