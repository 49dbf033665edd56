package symbolize

import "debug/elf"

// FileFacts is what a file that a process executes offers for its stacks.
type FileFacts struct {
	Path string // as the process sees it
	// Symbols is where function names come from, the best source first found: "symbol table",
	// "mini debug info", "debug file", "exported names", or "" for nowhere.
	Symbols string
	// Lines: source lines and inlined functions are known.
	Lines bool
	// Unwind: stacks are walked by its call frame information, else by frame pointers.
	Unwind bool
}

// FileFacts lists the files that the process executes code of, in the order of addresses.
func (s *Symbolizer) FileFacts() []FileFacts {
	var all []FileFacts
	seen := map[fileKey]bool{}
	for _, m := range s.Mappings() {
		key := fileKey{m.Dev, m.Inode}
		if !m.Exec || !m.FileBacked() || seen[key] {
			continue
		}
		seen[key] = true
		facts := FileFacts{Path: m.Path}
		if file := s.fileBehind(m); file != nil {
			facts.Symbols, facts.Lines = file.symbolSource(), file.hasLines()
			_, err := file.UnwindTable()
			facts.Unwind = err == nil
		}
		all = append(all, facts)
	}
	return all
}

// fileBehind returns the ELF file behind one of the Mappings; nil when it is none.
func (s *Symbolizer) fileBehind(m Mapping) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.history.at(m.Start); r != nil && r.Mapping == m {
		return s.modules.fileOf(r)
	}
	return nil
}

// sourceNames are those of symbolSources, in its order.
var sourceNames = [...]string{"symbol table", "mini debug info", "debug file", "exported names"}

// symbolSource names the best source of the file's symbols; "exported names" alone leave
// static functions without a name.
func (f *File) symbolSource() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, source := range f.symbolSources() {
		if source.get() != nil {
			return sourceNames[i]
		}
	}
	return ""
}

// hasLines tells whether the file, or its separate debug file, has line numbers.
func (f *File) hasLines() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range []*File{f, f.debugFile()} {
		if file == nil {
			continue
		}
		if section := file.elf.Section(".debug_line"); section != nil && section.Type != elf.SHT_NOBITS {
			return true
		}
	}
	return false
}
