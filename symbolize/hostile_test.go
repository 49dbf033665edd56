package symbolize

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// maxForHostile is what a hostile file of a few KiB may make us allocate, in bytes.
const maxForHostile = 96 << 20

// seed reads one of the fuzzers' files.
func seed(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "elf", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// contents returns the part of the file that a section lies in, to be changed.
func contents(t *testing.T, data []byte, section string) []byte {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	s := file.Section(section)
	if s == nil {
		t.Fatalf("no section %s", section)
	}
	return data[s.Offset : s.Offset+s.FileSize]
}

// sectionHeader returns the bytes of a section's header, to be changed.
func sectionHeader(t *testing.T, data []byte, section string) []byte {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	table := binary.LittleEndian.Uint64(data[40:])
	for i, s := range file.Sections {
		if s.Name == section {
			return data[table+uint64(i)*64:][:64]
		}
	}
	t.Fatalf("no section %s", section)
	return nil
}

// askAll asks a file for all that it knows and returns the names and the lines it gave.
func askAll(data []byte) (functions, lines int) {
	f, err := NewFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	text := f.Section(".text")
	if text == nil {
		return 0, 0
	}
	for address := text.Addr; address < text.Addr+min(text.Size, 4096); address++ {
		if _, ok := f.FunctionAt(address); ok {
			functions++
		}
		if len(f.positions(address)) > 0 {
			lines++
		}
	}
	return functions, lines
}

// Offsets in an ELF section header.
const (
	headerFlags  = 8
	headerOffset = 24
	headerSize   = 32
	headerLink   = 40
)

func TestHostileFiles(t *testing.T) {
	little := binary.LittleEndian
	set := func(section string, at int, value uint64) func(*testing.T, []byte) {
		return func(t *testing.T, data []byte) { little.PutUint64(sectionHeader(t, data, section)[at:], value) }
	}
	for name, test := range map[string]struct {
		seed    string
		corrupt func(*testing.T, []byte)
		names   bool // that the symbols are still there
	}{
		"unharmed":                    {"dwarf5", func(*testing.T, []byte) {}, true},
		"symbols beyond the end":      {"dwarf5", set(".symtab", headerOffset, 1<<40), false},
		"symbols without end":         {"dwarf5", set(".symtab", headerSize, 1<<62), false},
		"names in no section":         {"dwarf5", set(".symtab", headerLink, 1<<31), false},
		"names without end":           {"dwarf5", set(".strtab", headerSize, 1<<62), false},
		"debug information too long":  {"dwarf5", set(".debug_info", headerSize, 1<<62), true},
		"strings too long":            {"dwarf5", set(".debug_str", headerSize, 1<<40), true},
		"compressed section names":    {"dwarf5", set(".shstrtab", headerFlags, uint64(elf.SHF_COMPRESSED)), false},
		"compressed to 1 EiB":         {"zlib", func(t *testing.T, d []byte) { little.PutUint64(contents(t, d, ".debug_info")[8:], 1<<60) }, true},
		"more than it unpacks to":     {"zlib", func(t *testing.T, d []byte) { little.PutUint64(contents(t, d, ".debug_info")[8:], 60<<20) }, true},
		"line table of 2^35 files":    {"dwarf5", manyFiles, true},
		"functions that name a cycle": {"dwarf5", func(t *testing.T, d []byte) { fill(contents(t, d, ".debug_info")[100:], 0x2e) }, true},
		"units of no length":          {"dwarf5", func(t *testing.T, d []byte) { fill(contents(t, d, ".debug_info")[:4], 0) }, true},
		"abbreviations without end":   {"dwarf5", func(t *testing.T, d []byte) { fill(contents(t, d, ".debug_abbrev"), 1) }, true},
		"dictionary of 4 GiB":         {"debugdata", hugeDictionary, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := seed(t, test.seed)
			test.corrupt(t, data)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			functions, lines := askAll(data)
			runtime.ReadMemStats(&after)
			if test.names && functions == 0 {
				t.Error("the symbols are lost")
			}
			if name == "unharmed" && lines == 0 {
				t.Error("the lines are lost")
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxForHostile {
				t.Errorf("%d bytes allocated for a file of %d", allocated, len(data))
			}
		})
	}
}

func fill(data []byte, value byte) {
	for i := range data {
		data[i] = value
	}
}

// manyFiles makes the line table claim 2^35 directories that take no space each.
func manyFiles(t *testing.T, data []byte) {
	t.Helper()
	table := contents(t, data, ".debug_line")
	const fixed = 4 + 2 + 2 + 4 + 6 // up to the number of opcodes
	at := fixed + int(table[fixed-1])
	copy(table[at-1:], []byte{0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}) // no formats, 2^35 entries
}

// hugeDictionary makes the block of .gnu_debugdata ask for the largest dictionary.
func hugeDictionary(t *testing.T, data []byte) {
	t.Helper()
	packed := contents(t, data, ".gnu_debugdata")
	at := bytes.Index(packed, []byte{0x21, 0x01})
	if at < 0 {
		t.Fatal("no LZMA2 filter")
	}
	packed[at+2] = 40
}

// TestLongPathsAreRefused: one long directory, joined to many short names, makes gigabytes.
func TestLongPathsAreRefused(t *testing.T) {
	var table bytes.Buffer
	table.Write(make([]byte, 4))
	table.Write([]byte{4, 0, 0, 0, 0, 0, 1, 1, 1, 0xfb, 14, 1}) // version 4, lengths, one opcode
	table.Write(bytes.Repeat([]byte{'d'}, 1<<20))
	table.Write([]byte{0, 0})
	for range 4096 {
		table.Write([]byte{'f', 0, 1, 0, 0})
	}
	table.WriteByte(0)
	binary.LittleEndian.PutUint32(table.Bytes(), uint32(table.Len()-4))
	d := &debugInfo{sections: map[string]*sectionBytes{
		".debug_line": {data: table.Bytes()}, ".debug_str": {}, ".debug_line_str": {},
	}}
	if err := d.checkLineHeader(0, "/src"); err == nil {
		t.Error("4096 paths of 1 MiB are accepted")
	}
}

func TestAbbreviationLimits(t *testing.T) {
	declaration := func(attributes int, form byte) []byte {
		table := []byte{1, 0x2e, 0}
		for range attributes {
			table = append(table, 3, form)
		}
		return append(table, 0, 0, 0)
	}
	for name, test := range map[string]struct {
		table []byte
		ok    bool
	}{
		"ordinary":        {declaration(12, 0x0b), true},
		"many attributes": {declaration(maxAttributes+1, 0x19), false},
		"many strings":    {declaration(maxStringAttributes+1, formStrp), false},
		"no end":          {[]byte{1, 0x2e, 0, 3, 8}, false},
		"empty":           {nil, false},
	} {
		if err := checkAbbreviations(test.table, 0); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkStrings(bytes.Repeat([]byte{'x'}, maxDebugString)); err == nil {
		t.Error("a string of 1 MiB is accepted")
	}
}
