package symbolize

import (
	"debug/elf"
	"strings"
)

// source is one place that symbols come from, read at the first look into it.
type source struct {
	read  func() (*table, error)
	table *table
	done  bool
}

// get returns the source's table; nil when it has none or it is unreadable, which must not
// keep the other sources from answering.
func (s *source) get() *table {
	if !s.done {
		s.done = true
		err := guard("symbol table", func() (err error) {
			s.table, err = s.read()
			return err
		})
		if err != nil {
			s.table = nil
		}
	}
	return s.table
}

func (s *source) cost() int64 {
	if s.table == nil {
		return 0
	}
	return s.table.cost()
}

// symbolSources returns where the file's symbols come from, best first. A full symbol table
// leaves nothing for the others to add. The lock is held.
func (f *File) symbolSources() []*source {
	if f.sources != nil {
		return f.sources
	}
	full := &source{read: func() (*table, error) { return readTable(f.elf, elf.SHT_SYMTAB) }}
	f.sources = []*source{full}
	if full.get() != nil {
		return f.sources
	}
	f.sources = append(f.sources,
		&source{read: f.debugdataTable},
		&source{read: f.debugFileTable},
		&source{read: func() (*table, error) { return readTable(f.elf, elf.SHT_DYNSYM) }})
	return f.sources
}

// debugFileTable reads the symbols of the separate debug file.
func (f *File) debugFileTable() (*table, error) {
	separate := f.debugFile()
	if separate == nil {
		return nil, nil
	}
	return readTable(separate.elf, elf.SHT_SYMTAB)
}

// FunctionAt returns the function that the virtual address lies in, as the file's own
// addresses count; false when the file does not say.
func (f *File) FunctionAt(address uint64) (Symbol, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sized := range []bool{true, false} {
		for _, s := range f.symbolSources() {
			if t := s.get(); t != nil {
				if symbol, ok := t.function(address, sized); ok {
					return symbol, true
				}
			}
		}
	}
	return Symbol{}, false
}

// ObjectAt returns the data object (a static variable, a table) that the virtual address
// lies in; false when the file does not say.
func (f *File) ObjectAt(address uint64) (Symbol, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.symbolSources() {
		if t := s.get(); t != nil {
			if symbol, ok := t.object(address); ok {
				return symbol, true
			}
		}
	}
	return Symbol{}, false
}

// Symbols looks the names up in every source the file has (.symtab, .gnu_debugdata, separate
// debug file, .dynsym) in one pass. A name without a symbol is absent from the result. Where
// the versions of a symbol share a name, one of them is returned.
func (f *File) Symbols(names ...string) map[string]Symbol {
	found := make(map[string]Symbol, len(names))
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	f.EachSymbol(func(symbol Symbol) bool {
		if wanted[symbol.Name] {
			delete(wanted, symbol.Name)
			found[symbol.Name] = symbol
		}
		return len(wanted) > 0
	})
	return found
}

// EachSymbol calls visit with every symbol of every source, until it returns false. Symbols
// that two sources have in common come twice. visit must not call the File.
func (f *File) EachSymbol(visit func(Symbol) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.symbolSources() {
		if t := s.get(); t != nil && !t.each(visit) {
			return
		}
	}
}

// maxStrings bounds the string table that is read whole to walk over all names, in bytes.
const maxStrings = 128 << 20

// each calls visit with the table's symbols; false when visit asked to stop.
func (t *table) each(visit func(Symbol) bool) bool {
	strings := t.strings()
	for _, entries := range [][]entry{t.functions, t.objects} {
		function := len(t.functions) > 0 && len(entries) > 0 && &entries[0] == &t.functions[0]
		for _, e := range entries {
			name := cutName(strings, e.name)
			if name == "" || name[0] == '$' {
				continue
			}
			if !visit(Symbol{Name: name, Address: e.address, Size: uint64(e.size), Function: function}) {
				return false
			}
		}
	}
	return true
}

// strings reads the whole string table, for one walk.
func (t *table) strings() []byte {
	if t.namesSize > maxStrings {
		return nil
	}
	data := make([]byte, t.namesSize)
	n, _ := t.names.ReadAt(data, 0)
	return data[:n]
}

// cutName returns the text at the offset up to its zero byte or version.
func cutName(data []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(data)) {
		return ""
	}
	data = data[offset:]
	data = data[:min(len(data), maxName)]
	name := string(data)
	if end := strings.IndexAny(name, "\x00@"); end > 0 {
		return name[:end]
	} else if end == 0 {
		return ""
	}
	return name
}
