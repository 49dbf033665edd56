package unwind

import "encoding/binary"

// reader takes values off the front of foreign bytes. A read past the end yields zero and
// sets failed, so that callers check once.
type reader struct {
	data   []byte
	at     int
	order  binary.ByteOrder
	failed bool
}

// rest tells how many bytes are left.
func (r *reader) rest() int { return len(r.data) - r.at }

// take returns the next n bytes.
func (r *reader) take(n uint64) []byte {
	if r.failed || n > uint64(r.rest()) {
		r.failed = true
		return nil
	}
	taken := r.data[r.at : r.at+int(n)]
	r.at += int(n)
	return taken
}

func (r *reader) u8() uint8 {
	if r.failed || r.at >= len(r.data) {
		r.failed = true
		return 0
	}
	b := r.data[r.at]
	r.at++
	return b
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return r.order.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return r.order.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return r.order.Uint64(b)
	}
	return 0
}

// leb128Bytes is the most bytes that a 64-bit number needs; more is refused.
const leb128Bytes = 10

// uleb reads an unsigned LEB128 number.
func (r *reader) uleb() uint64 {
	var value uint64
	for i := range leb128Bytes {
		b := r.u8()
		value |= uint64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return value
		}
	}
	r.failed = true
	return 0
}

// sleb reads a signed LEB128 number.
func (r *reader) sleb() int64 {
	var value int64
	for i := range leb128Bytes {
		b := r.u8()
		value |= int64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			if shift := 7 * (i + 1); b&0x40 != 0 && shift < 64 {
				value |= -1 << shift
			}
			return value
		}
	}
	r.failed = true
	return 0
}

// text reads a string that ends with a zero byte.
func (r *reader) text() string {
	for i := r.at; i < len(r.data); i++ {
		if r.data[i] == 0 {
			s := string(r.data[r.at:i])
			r.at = i + 1
			return s
		}
	}
	r.failed = true
	return ""
}

// Pointer encodings of .eh_frame (Linux Standard Base core specification, section 10.5).
const (
	encodingFormat   = 0x0f
	encodingRelative = 0x70
	encodingPCRel    = 0x10
	encodingIndirect = 0x80
	encodingOmit     = 0xff

	encodedPointer = 0x00
	encodedULEB    = 0x01
	encodedU16     = 0x02
	encodedU32     = 0x03
	encodedU64     = 0x04
	encodedSLEB    = 0x09
	encodedS16     = 0x0a
	encodedS32     = 0x0b
	encodedS64     = 0x0c
)

// number reads a number in the format of a pointer encoding.
func (r *reader) number(encoding uint8) uint64 {
	switch encoding & encodingFormat {
	case encodedPointer, encodedU64, encodedS64:
		return r.u64()
	case encodedULEB:
		return r.uleb()
	case encodedU16:
		return uint64(r.u16())
	case encodedU32:
		return uint64(r.u32())
	case encodedSLEB:
		return uint64(r.sleb())
	case encodedS16:
		return uint64(int16(r.u16()))
	case encodedS32:
		return uint64(int32(r.u32()))
	}
	r.failed = true
	return 0
}

// pointer reads an encoded pointer; base is the address of the reader's first byte. The
// encodings that nothing but debuggers' own tables use are refused.
func (r *reader) pointer(encoding uint8, base uint64) uint64 {
	place := base + uint64(r.at)
	value := r.number(encoding)
	switch encoding & (encodingRelative | encodingIndirect) {
	case 0:
		return value
	case encodingPCRel:
		return place + value
	}
	r.failed = true
	return 0
}
