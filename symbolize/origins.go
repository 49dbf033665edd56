package symbolize

import (
	"bytes"
	"cmp"
	"debug/dwarf"
)

// attrMIPSLinkageName is what compilers used before DWARF 4 had AttrLinkageName.
const attrMIPSLinkageName dwarf.Attr = 0x2007

// entryName is what an entry says about the name of its function.
type entryName struct {
	name   string       // mangled; "" when only the entry it refers to has it
	origin dwarf.Offset // that entry; 0 for none
	other  bool         // origin counts in the alternate file
}

// entryName reads what an entry says about its function's name.
func (d *debugInfo) entryName(entry *dwarf.Entry) entryName {
	var plain, linkage string
	var result entryName
	for _, f := range entry.Field {
		switch f.Attr {
		case dwarf.AttrName:
			plain = d.text(f)
		case dwarf.AttrLinkageName, attrMIPSLinkageName:
			linkage = d.text(f)
		case dwarf.AttrAbstractOrigin, dwarf.AttrSpecification:
			switch value := f.Val.(type) {
			case dwarf.Offset:
				result.origin = value
			case int64: // an offset in the file that dwz made
				if value > 0 && value == int64(uint32(value)) {
					result.origin, result.other = dwarf.Offset(value), true
				}
			}
		}
	}
	result.name = cmp.Or(linkage, plain)
	return result
}

// text returns a field's string, from the alternate file where dwz moved it there.
func (d *debugInfo) text(field dwarf.Field) string {
	switch value := field.Val.(type) {
	case string:
		return value[:min(len(value), maxName)]
	case int64:
		if other := d.alternateInfo(); other != nil && field.Class == dwarf.ClassStringAlt && value >= 0 {
			strings := other.data(".debug_str")
			strings = strings[min(uint64(value), uint64(len(strings))):]
			text, _, _ := bytes.Cut(strings[:min(len(strings), maxName)], []byte{0})
			return string(text)
		}
	}
	return ""
}

// lookUpName reads the name at an entry of whichever unit it lies in: link-time optimisation
// inlines functions of other units, dwz moves what units share to units of their own.
func (d *debugInfo) lookUpName(offset uint64) entryName {
	index := d.unitOf(offset)
	if index < 0 {
		return entryName{}
	}
	var name entryName
	_ = guard("entry", func() error {
		data, err := d.openCached(index)
		if err != nil {
			return err
		}
		reader := data.Reader()
		reader.Seek(dwarf.Offset(offset))
		entry, err := reader.Next()
		if err == nil && entry != nil {
			name = d.entryName(entry)
		}
		return err
	})
	return name
}

// alternateName reads the name at an entry of the alternate file.
func (d *debugInfo) alternateName(offset uint64) string {
	other := d.alternateInfo()
	if other == nil {
		return ""
	}
	for range maxOrigins {
		n := other.lookUpName(offset)
		if n.name != "" || n.origin == 0 || n.other {
			return n.name
		}
		offset = uint64(n.origin)
	}
	return ""
}
