package unwind

import (
	"encoding/binary"
	"strings"
)

// cie is a common information entry: what many functions' entries share.
type cie struct {
	codeAlign uint64
	dataAlign int64
	returns   uint64 // the register that holds the return address
	encoding  uint8  // of the functions' addresses
	sized     bool   // augmentation data has a length
	signal    bool   // the kernel calls this code to end a signal handler
	initial   state  // after the entry's own instructions
	broken    bool   // its functions cannot be unwound
}

// fde is a frame description entry: one function's instructions.
type fde struct {
	start, end uint64 // addresses as the file numbers them
	common     *cie
	code       []byte // instructions
}

// section is an .eh_frame section.
type section struct {
	data    []byte
	address uint64 // of its first byte
	order   binary.ByteOrder
	machine machine
}

// extendedLength announces a 64-bit length.
const extendedLength = 0xffffffff

// entries hands over every function's entry, in the order of the section. What is malformed
// is left out; a malformed length ends the section.
func (s *section) entries(visit func(fde)) {
	common := map[int]*cie{}
	for at := 0; at < len(s.data); {
		r := reader{data: s.data, at: at, order: s.order}
		length := uint64(r.u32())
		if length == extendedLength {
			length = r.u64()
		}
		if length == 0 || r.failed {
			// A terminator; linkers may leave one between two files' parts.
			at += 4
			continue
		}
		body := r.at
		if length > uint64(len(s.data)-body) {
			return
		}
		end := body + int(length)
		r.data = s.data[:end]
		if id := r.u32(); id == 0 {
			common[at] = s.common(&r)
		} else if c := common[body-int(id)]; c != nil && !c.broken {
			if f, ok := s.function(&r, c); ok {
				visit(f)
			}
		}
		at = end
	}
}

// common reads a CIE behind its id.
func (s *section) common(r *reader) *cie {
	c := &cie{}
	version := r.u8()
	augmentation := r.text()
	if version == 4 { // address and segment size
		r.take(2)
	}
	c.codeAlign, c.dataAlign = r.uleb(), r.sleb()
	if version == 1 {
		c.returns = uint64(r.u8())
	} else {
		c.returns = r.uleb()
	}
	known := version == 1 || version == 3 || version == 4
	if !known || !s.augmentation(r, c, augmentation) || r.failed || c.returns != s.machine.returns {
		c.broken = true
		return c
	}
	run := interpreter{common: c, machine: s.machine, order: s.order}
	if !run.execute(r.data[r.at:], 0, nil) {
		c.broken = true
	}
	c.initial = run.state
	return c
}

// augmentation reads what the letters of a CIE announce.
func (s *section) augmentation(r *reader, c *cie, letters string) bool {
	if letters == "" {
		return true
	}
	rest, sized := strings.CutPrefix(letters, "z")
	if !sized {
		return false
	}
	c.sized = true
	size := r.uleb()
	end := r.at + int(min(size, uint64(len(r.data))))
	for _, letter := range rest {
		switch letter {
		case 'R':
			c.encoding = r.u8()
		case 'P':
			r.number(r.u8())
		case 'L':
			r.u8()
		case 'S':
			c.signal = true
		case 'B', 'G': // arm64: signed return addresses, memory tagging of the stack
		default:
			return false
		}
	}
	if r.failed || r.at > end || end > len(r.data) {
		return false
	}
	r.at = end
	return true
}

// function reads an FDE behind its CIE's offset.
func (s *section) function(r *reader, c *cie) (fde, bool) {
	start := r.pointer(c.encoding, s.address)
	size := r.number(c.encoding & encodingFormat)
	if c.sized {
		r.take(r.uleb())
	}
	if r.failed || size == 0 || start+size < start {
		return fde{}, false
	}
	return fde{start: start, end: start + size, common: c, code: r.data[r.at:]}, true
}
