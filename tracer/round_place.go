package tracer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"memtrace/symbolize"
	"memtrace/tracer/probe"
	"memtrace/tracer/target"
)

// roundPlace is a boundary in the target's code: one file, and where in it.
type roundPlace struct {
	mapping target.Mapping
	sites   []probe.Site
}

// roundPlaces finds the function or the marker of a specification.
func (t *tracee) roundPlaces(s roundSpec) ([]roundPlace, error) {
	switch s.kind {
	case roundsFunction:
		return t.functionPlaces(s)
	case roundsMarker:
		return t.markerPlaces(s)
	}
	return nil, nil
}

// functionPlaces finds a function: the executable's, else that of the one library that has
// it. Where a file has several of one name, all of them are boundaries.
func (t *tracee) functionPlaces(s roundSpec) ([]roundPlace, error) {
	found := t.symbols.Functions(func(name string) bool { return name == s.name || withoutArguments(name) == s.name })
	found = slices.DeleteFunc(found, func(f symbolize.Function) bool { return s.path != "" && !isPath(f.Module, s.path) })
	if own := slices.DeleteFunc(slices.Clone(found), func(f symbolize.Function) bool { return f.Module != t.target.Exe }); len(own) > 0 {
		found = own
	}
	if len(found) == 0 {
		return nil, &RoundError{Spec: t.options.Round, Reason: t.unknownFunction(s)}
	}
	if modules := modulesOf(found); len(modules) > 1 {
		return nil, &RoundError{Spec: t.options.Round, Reason: fmt.Sprintf("several files have it: give one, such as func:%s:%s, or another of %s", modules[0], s.name, strings.Join(modules[1:], ", "))}
	}
	return t.placesOf(found)
}

// placesOf turns functions of one file into places for probes.
func (t *tracee) placesOf(functions []symbolize.Function) ([]roundPlace, error) {
	places := map[uint64]*roundPlace{} // by the mapping's start
	var ordered []roundPlace
	seen := map[uint64]bool{}
	for _, f := range functions {
		if seen[f.Offset] {
			continue // another name of the same function
		}
		seen[f.Offset] = true
		mapping, known := t.mappingOf(f.Address)
		if !known {
			return nil, &RoundError{Spec: t.options.Round, Reason: f.Module + " is no longer mapped: try again"}
		}
		if places[mapping.Start] == nil {
			places[mapping.Start] = &roundPlace{mapping: mapping}
		}
		offset, err := t.cheapestPlace(mapping, f)
		if err != nil {
			return nil, err
		}
		places[mapping.Start].sites = append(places[mapping.Start].sites, probe.Site{Offset: offset})
	}
	for _, place := range places {
		ordered = append(ordered, *place)
	}
	return ordered, nil
}

// mappingOf finds the executable mapping that an address lies in.
func (t *tracee) mappingOf(address uint64) (target.Mapping, bool) {
	for _, m := range t.target.Mappings {
		if address >= m.Start && address < m.End {
			return m, true
		}
	}
	return target.Mapping{}, false
}

// cheapestPlace chooses the instruction near a function's start where a probe costs least.
func (t *tracee) cheapestPlace(m target.Mapping, f symbolize.Function) (uint64, error) {
	const longest = 16 << 10
	file, err := t.target.OpenMapped(m)
	if err != nil {
		return 0, fmt.Errorf("open the file of the round's boundary: %w", err)
	}
	defer file.Close()
	code := make([]byte, min(f.Size, longest))
	if read, err := file.ReadAt(code, int64(f.Offset)); err != nil {
		code = code[:read] // what cannot be read is not chosen
	}
	return f.Offset + probe.Choose(machine, code, probe.Malloc).Offset, nil
}

// unknownFunction says what there is instead.
func (t *tracee) unknownFunction(s roundSpec) string {
	const names = 5
	where := "the process"
	if s.path != "" {
		where = s.path
		if !slices.ContainsFunc(t.symbols.Mappings(), func(m symbolize.Mapping) bool { return m.Exec && isPath(m.Path, s.path) }) {
			return fmt.Sprintf("the process has not mapped %s: its files are in /proc/%d/maps", s.path, t.pid)
		}
	}
	nearest := t.symbols.Nearest(s.name, names)
	if len(nearest) == 0 {
		return fmt.Sprintf("no function of that name in %s, nor any other: its files are stripped", where)
	}
	return fmt.Sprintf("no function of that name in %s; the nearest are %s", where, strings.Join(nearest, ", "))
}

// isPath tells whether a file is the one that the user named: by its path or the end of it.
func isPath(file, named string) bool {
	return file == named || strings.HasSuffix(file, "/"+strings.TrimPrefix(filepath.Clean(named), "/"))
}

// withoutArguments cuts the arguments off a C++ function's readable name.
func withoutArguments(name string) string {
	if at := strings.IndexByte(name, '('); at > 0 {
		return name[:at]
	}
	return name
}

// modulesOf lists the files of functions, each once.
func modulesOf(functions []symbolize.Function) []string {
	var modules []string
	for _, f := range functions {
		if !slices.Contains(modules, f.Module) {
			modules = append(modules, f.Module)
		}
	}
	return modules
}
