package target

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// errChanged: the process changed while it was read; reading again may succeed.
var errChanged = errors.New("the process changed while it was read")

// supported is what the refusals name.
const supported = "glibc, musl, jemalloc, tcmalloc and mimalloc can be traced"

// discover finds the allocators. It looks for malloc as the dynamic linker does: in the
// executable first, then in the libraries in the order in which they were linked.
func (t *Target) discover() error {
	all, err := t.readMappings()
	if err != nil {
		return err
	}
	t.Mappings = nil
	for _, m := range all {
		if m.Executable {
			t.Mappings = append(t.Mappings, m)
		}
	}
	order, err := t.lookupOrder(all)
	if err != nil {
		return err
	}
	return t.search(order)
}

// search goes through the files in lookup order.
func (t *Target) search(order []Mapping) error {
	t.Allocator, t.Others, t.Wrappers = Allocator{}, nil, nil
	var unknown string
	var facts executableFacts
	var hidden *Refusal // the first file that is out of reach
	for i, m := range order {
		o, err := t.openObject(m)
		if err != nil {
			if i == 0 || errors.Is(err, os.ErrPermission) {
				return t.objectRefusal(m, err)
			}
			if hidden == nil {
				errors.As(err, &hidden)
			}
			continue
		}
		if i == 0 {
			facts = factsOf(o)
		}
		if err := o.find(wanted, i == 0); err == nil {
			unknown = t.consider(o, i == 0, facts.static, unknown)
		}
		o.Close()
	}
	if hidden != nil && unknown == "" && t.Allocator.Name == "" {
		return hidden
	}
	return t.verdict(unknown, facts)
}

// consider decides what one file of the lookup order adds. unknown is the file whose malloc
// is used although it cannot be traced; it stays once set.
func (t *Target) consider(o *object, executable, static bool, unknown string) string {
	_, defines := o.symbols["malloc"]
	sign, known := classify(o)
	sanitizer := sanitizerIn(o)
	settled := t.Allocator.Name != "" || unknown != ""
	switch {
	case sanitizer != "" && defines:
		if !settled {
			return sanitizer + " in " + o.mapping.Path
		}
	case known:
		a := makeAllocator(o, sign, executable, t.Mappings)
		if !settled && (defines || static) && hasMalloc(a) {
			t.Allocator = a
		} else if hasOwnEntries(a) {
			t.Others = append(t.Others, a)
		}
	case !defines || settled:
	case passesOn(o):
		t.Wrappers = append(t.Wrappers, o.mapping.Path)
	default:
		return o.mapping.Path
	}
	return unknown
}

// sanitizerIn names the sanitizer whose runtime the file holds, "" for none.
func sanitizerIn(o *object) string {
	for name, title := range sanitizers {
		if _, ok := o.symbols[name]; ok {
			return title
		}
	}
	return ""
}

// verdict refuses a process without a usable allocator.
func (t *Target) verdict(unknown string, facts executableFacts) error {
	switch {
	case unknown != "":
		return refuse(supported, "process %d (%s) allocates with an unknown malloc: %s", t.PID, t.Comm, unknown)
	case t.Allocator.Name != "":
		return nil
	case len(t.Others) > 0:
		t.Allocator, t.Others = t.Others[0], t.Others[1:]
		return nil
	case facts.golang:
		return refuse("its runtime allocates by itself; use go tool pprof's heap profile", "process %d (%s) is a Go program without a C library's malloc", t.PID, t.Comm)
	case facts.static && facts.stripped:
		return refuse("run a build with its symbol table", "process %d (%s) is statically linked and stripped, so its malloc cannot be found", t.PID, t.Comm)
	}
	err := refuse(supported, "process %d (%s) has no allocator that is known", t.PID, t.Comm)
	if facts.static {
		return err
	}
	// The dynamic linker may only be about to load the C library.
	return fmt.Errorf("%w: %w", err, errChanged)
}

// hasMalloc tells whether the allocator's malloc itself can be probed.
func hasMalloc(a Allocator) bool {
	_, ok := a.Find("malloc")
	return ok
}

// hasOwnEntries tells whether an allocator that malloc does not lead to can be called all the
// same: under names of its own. A C library's malloc that another one stands before cannot.
func hasOwnEntries(a Allocator) bool {
	return a.Name != "glibc" && a.Name != "musl" && len(a.Entries) > 0
}

// passesOn recognises a library whose malloc calls the next one: it asks the dynamic linker
// for "malloc", or imports the C library's inner name.
func passesOn(o *object) bool {
	if o.imported["__libc_malloc"] {
		return true
	}
	return o.imported["dlsym"] && searchConstants(o, mallocWord) != ""
}

// executableFacts is what the executable's file says about refusals.
type executableFacts struct{ static, stripped, golang bool }

func factsOf(o *object) executableFacts {
	facts := executableFacts{static: true, stripped: o.elf.Section(".symtab") == nil}
	for _, p := range o.elf.Progs {
		if p.Type == elf.PT_INTERP {
			facts.static = false
		}
	}
	facts.golang = o.elf.Section(".go.buildinfo") != nil || o.elf.Section(".gopclntab") != nil
	return facts
}

// objectRefusal explains why the executable itself cannot be read.
func (t *Target) objectRefusal(m Mapping, err error) error {
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, os.ErrPermission):
		return t.readRefusal(err)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	return refuse("only 64-bit ELF programs can be traced", "process %d: %v", t.PID, err)
}

// lookupOrder lists one executable mapping of each file in the order in which the dynamic
// linker looks symbols up.
func (t *Target) lookupOrder(all []Mapping) ([]Mapping, error) {
	executable, err := t.executableMapping()
	if err != nil {
		return nil, err
	}
	objects, err := t.linkMap()
	switch {
	case errors.Is(err, errNoLinkMap):
		return append([]Mapping{executable}, t.dependencyOrder(executable)...), nil
	case errors.Is(err, os.ErrPermission):
		return nil, t.readRefusal(err)
	case err != nil:
		return nil, err
	}
	var order []Mapping
	for _, object := range objects {
		for _, m := range all {
			if object.dynamic < m.Start || object.dynamic >= m.End {
				continue
			}
			if code, ok := t.codeOf(m); ok {
				order = append(order, code)
			}
			break
		}
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("nothing of the list of loaded objects is mapped: %w", errChanged)
	}
	return order, nil
}

// codeOf returns the executable mapping of the same file.
func (t *Target) codeOf(m Mapping) (Mapping, bool) {
	for _, code := range t.Mappings {
		if code.sameFile(m) {
			return code, true
		}
	}
	return Mapping{}, false
}

// executableMapping finds the mapping of the program's own code: that of its entry point.
func (t *Target) executableMapping() (Mapping, error) {
	auxv, err := t.read("auxv", 1<<16)
	if err != nil {
		return Mapping{}, t.readRefusal(err)
	}
	entry := auxValue(auxv, auxEntry)
	for _, m := range t.Mappings {
		if m.Inode != 0 && entry >= m.Start && entry < m.End {
			return m, nil
		}
	}
	return Mapping{}, fmt.Errorf("find the code of process %d: %w", t.PID, errChanged)
}

// dependencyOrder is the lookup order without the dynamic linker's own list: preloaded
// libraries, then dependencies breadth first, as far as they are mapped.
func (t *Target) dependencyOrder(executable Mapping) []Mapping {
	var order []Mapping
	seen := map[string]bool{}
	add := func(name string) {
		base := path.Base(name)
		if seen[base] {
			return
		}
		seen[base] = true
		for _, m := range t.Mappings {
			if m.Inode != 0 && path.Base(m.Path) == base && !m.sameFile(executable) {
				order = append(order, m)
				return
			}
		}
	}
	for _, name := range t.preloads() {
		add(name)
	}
	for next := -1; next < len(order); next++ {
		from := executable
		if next >= 0 {
			from = order[next]
		}
		o, err := t.openObject(from)
		if err != nil {
			continue
		}
		for _, name := range o.dynamicStrings(elf.DT_NEEDED) {
			add(name)
		}
		o.Close()
	}
	return order
}

// preloads are the libraries that the environment and the system preload.
func (t *Target) preloads() []string {
	var names []string
	if environ, err := t.read("environ", maxText); err == nil {
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if value, found := strings.CutPrefix(entry, "LD_PRELOAD="); found {
				names = append(names, strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' })...)
			}
		}
	}
	return names
}
