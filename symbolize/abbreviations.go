package symbolize

import (
	"bytes"
	"errors"
	"fmt"
)

// Limits of what one entry of the debug information may hold. Entries of real compilers have
// up to some thirty attributes, half a dozen of them strings.
const (
	maxAttributes       = 128
	maxStringAttributes = 16
	maxDebugString      = 1 << 20 // bytes of one string, about
)

// formImplicitConst is the one form whose value stands in the abbreviation.
const formImplicitConst = 0x21

// stringForms are the forms that debug/dwarf turns into a copy of a string.
var stringForms = [...]uint64{formString, formStrp, formLineStrp, 0x1a, 0x25, 0x26, 0x27, 0x28}

var errAbbreviations = errors.New("malformed abbreviations")

// checkAbbreviations refuses a table of abbreviations with entries that would need more
// memory than any real one: the limit on the work for a unit only holds between entries.
func checkAbbreviations(section []byte, offset uint64) error {
	if offset > uint64(len(section)) {
		return errAbbreviations
	}
	r := byteReader{data: section[offset:]}
	for r.uvarint() != 0 { // the number of the abbreviation
		r.uvarint() // tag
		r.skip(1)   // whether it has children
		attributes, strings := 0, 0
		for {
			attribute, form := r.uvarint(), r.uvarint()
			if attribute == 0 && form == 0 {
				break
			}
			if form == formImplicitConst {
				r.uvarint()
			}
			attributes++
			for _, f := range stringForms {
				if f == form {
					strings++
				}
			}
		}
		if attributes > maxAttributes || strings > maxStringAttributes {
			return fmt.Errorf("entries of %d attributes: %w", attributes, errLimit)
		}
	}
	if r.failed {
		return errAbbreviations
	}
	return nil
}

// checkStrings refuses a string section with a string of more than maxDebugString bytes. It
// looks for one end of a string in each piece of half that size, which the first page of the
// piece nearly always has.
func checkStrings(section []byte) error {
	const piece = maxDebugString / 2
	for at := 0; at+piece <= len(section); at += piece {
		if bytes.IndexByte(section[at:at+piece], 0) < 0 {
			return fmt.Errorf("string at %#x: %w", at, errLimit)
		}
	}
	return nil
}
