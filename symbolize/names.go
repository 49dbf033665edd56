package symbolize

import (
	"cmp"
	"slices"
	"strings"
)

// Function is a function of a file that the process has mapped.
type Function struct {
	Name    string // readable
	Symbol  string // as the file has it
	Module  string // path as the process sees it
	Address uint64 // in the process
	Offset  uint64 // in the file, in bytes: where a uprobe goes
	Size    uint64 // bytes; 0 where the file does not say
	Mapping Mapping
}

// Symbol returns the data object (a static lock, a table) at an address of the process and
// how far into it the address lies. name is "" when no symbol covers the address.
func (s *Symbolizer) Symbol(address uint64) (name string, offset uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// .bss is anonymous memory behind the file's last mapping: look at the file before it.
	r := s.history.before(address)
	if r == nil {
		return "", 0
	}
	file := s.modules.fileOf(r)
	if file == nil {
		return "", 0
	}
	bias, ok := s.bias(r, file)
	virtual := address - bias
	if !ok || !file.loaded(virtual) {
		return "", 0
	}
	symbol, ok := file.ObjectAt(virtual)
	if !ok {
		return "", 0
	}
	return Demangle(symbol.Name), virtual - symbol.Address
}

// bias returns how far from the file's own addresses the copy of it lies that a region is
// part of. The code tells: it begins in one segment only, data may share pages with others.
func (s *Symbolizer) bias(part *region, file *File) (uint64, bool) {
	var code *region
	distance := func(r *region) uint64 { return max(r.Start, part.Start) - min(r.Start, part.Start) }
	for _, r := range s.history.live {
		if r.Exec && r.module == part.module && (code == nil || distance(r) < distance(code)) {
			code = r
		}
	}
	if code == nil {
		return 0, false
	}
	start, ok := file.Address(code.Offset)
	return code.Start - start, ok
}

// Functions returns the functions whose name match accepts, over all modules that are mapped
// executable, in order of their addresses. It is asked with the symbol as the file has it
// and, where that differs, with the readable name. Names of one function come one by one.
func (s *Symbolizer) Functions(match func(name string) bool) []Function {
	var found []Function
	s.eachFunction(func(symbol Symbol, function func() (Function, bool)) {
		readable := Demangle(symbol.Name)
		if !match(symbol.Name) && (readable == symbol.Name || !match(readable)) {
			return
		}
		if f, ok := function(); ok {
			f.Name = readable
			found = append(found, f)
		}
	})
	slices.SortFunc(found, func(a, b Function) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Symbol, b.Symbol))
	})
	return slices.Compact(found)
}

// eachFunction calls visit with the functions of all modules; the second argument finds out
// where in the process the function lies, false if it is not mapped.
func (s *Symbolizer) eachFunction(visit func(Symbol, func() (Function, bool))) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[*File]bool{}
	for _, r := range s.history.live {
		file := s.modules.fileOf(r)
		if !r.Exec || file == nil || seen[file] {
			continue
		}
		seen[file] = true
		file.EachSymbol(func(symbol Symbol) bool {
			if symbol.Function {
				visit(symbol, func() (Function, bool) { return s.locate(file, symbol) })
			}
			return true
		})
	}
	s.modules.shrink()
}

// locate finds a file's symbol in the process's memory.
func (s *Symbolizer) locate(file *File, symbol Symbol) (Function, bool) {
	offset, ok := file.Offset(symbol.Address)
	if !ok {
		return Function{}, false
	}
	for _, r := range s.history.live {
		if r.Exec && r.module != nil && r.module.file == file && offset >= r.Offset && offset-r.Offset < r.End-r.Start {
			return Function{
				Symbol: symbol.Name, Module: r.Path, Mapping: r.Mapping, Size: symbol.Size,
				Address: r.Start + (offset - r.Offset), Offset: offset,
			}, true
		}
	}
	return Function{}, false
}

// Nearest returns up to n names of functions that resemble name, the nearest first: for the
// message that says what might have been meant.
func (s *Symbolizer) Nearest(name string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var best []candidate
	known := map[string]bool{}
	s.eachFunction(func(symbol Symbol, _ func() (Function, bool)) {
		readable := Demangle(symbol.Name)
		distance := resemblance(name, readable)
		if len(best) == n && (n == 0 || distance >= best[n-1].distance) || known[readable] {
			return
		}
		known[readable] = true
		at, _ := slices.BinarySearchFunc(best, distance, func(c candidate, d int) int { return c.distance - d })
		for at < len(best) && best[at].distance == distance && best[at].name < readable {
			at++
		}
		best = slices.Insert(best, at, candidate{readable, distance})
		if len(best) > n {
			best = best[:n]
		}
	})
	var names []string
	for _, c := range best {
		names = append(names, c.name)
	}
	return names
}

// resemblance is small for names that are alike: the number of letters to change, where one
// that contains the other counts as near.
func resemblance(wanted, name string) int {
	const longest = 128
	wanted, name = strings.ToLower(wanted[:min(len(wanted), longest)]), strings.ToLower(name)
	if i := strings.LastIndex(name, "::"); i >= 0 && !strings.Contains(wanted, "::") {
		name = name[i+2:]
	}
	if wanted != "" && strings.Contains(name, wanted) {
		return 1 + min(len(name)-len(wanted), longest)/8
	}
	return editDistance(wanted, name[:min(len(name), longest)])
}

// editDistance counts the letters to insert, remove or change.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
