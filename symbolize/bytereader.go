package symbolize

import "encoding/binary"

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

// uvarint reads a LEB128 number. What does not fit into 64 bits is lost, as in debug/dwarf;
// of a signed number the length is right and the value is not.
func (r *byteReader) uvarint() uint64 {
	value := uint64(0)
	for i, b := range r.data {
		value |= uint64(b&0x7f) << min(7*i, 64)
		if b < 0x80 {
			r.data = r.data[i+1:]
			return value
		}
	}
	r.failed, r.data = true, nil
	return 0
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
