package output

import (
	"path"
	"slices"

	"github.com/google/pprof/profile"

	"memtrace/tracer/recording"
)

// profilePlace is a stack as the profile has it, for all samples that are taken there.
type profilePlace struct {
	locations []*profile.Location // leaf first
	module    string              // of the leaf
}

// place turns a stack into locations. Frames inlined into one function share the location of
// that function.
func (b *profileBuilder) place(stack recording.Stack) profilePlace {
	if len(stack) == 0 {
		return profilePlace{}
	}
	locations := make([]*profile.Location, 0, len(stack))
	for from := 0; from < len(stack); {
		to := from
		for to < len(stack)-1 && stack[to].Inlined {
			to++
		}
		locations = append(locations, b.location(stack[from:to+1]))
		from = to + 1
	}
	place := profilePlace{locations: locations}
	if module := stack[0].Module; module != "" {
		place.module = printable(path.Base(module))
	}
	return place
}

// location returns the location of frames at one address, the innermost first.
func (b *profileBuilder) location(frames []recording.Frame) *profile.Location {
	leaf := frames[0]
	key := locationKey{moduleKey{printable(leaf.Module), leaf.BuildID}, leaf.Address, frameName(leaf), leaf.Line}
	isLine := func(line profile.Line, f recording.Frame) bool { return line == b.line(f) }
	for _, known := range b.locations[key] {
		if slices.EqualFunc(known.Line, frames, isLine) {
			return known
		}
	}
	lines := make([]profile.Line, len(frames))
	for i, f := range frames {
		lines[i] = b.line(f)
	}
	location := &profile.Location{
		ID:      uint64(len(b.profile.Location)) + 1,
		Address: uint64(leaf.Address),
		Line:    lines,
	}
	if leaf.Module != "" {
		location.Mapping = b.mapping(key.module)
		extend(location.Mapping, leaf)
	}
	b.locations[key] = append(b.locations[key], location)
	b.profile.Location = append(b.profile.Location, location)
	return location
}

func (b *profileBuilder) line(f recording.Frame) profile.Line {
	return profile.Line{Function: b.function(f), Line: int64(max(0, f.Line))}
}

func (b *profileBuilder) function(f recording.Frame) *profile.Function {
	key := functionKey{printable(frameName(f)), printable(f.File)}
	known := b.functions[key]
	if known == nil {
		known = &profile.Function{ID: uint64(len(b.profile.Function)) + 1, Name: key.name, SystemName: key.name, Filename: key.file}
		b.functions[key] = known
		b.profile.Function = append(b.profile.Function, known)
	}
	return known
}

// mapping returns the mapping of a module. The names are all here already: pprof is told so,
// or it would look for the files of the target on the machine that reads the profile.
func (b *profileBuilder) mapping(key moduleKey) *profile.Mapping {
	known := b.modules[key]
	if known == nil {
		known = &profile.Mapping{
			ID: uint64(len(b.profile.Mapping)) + 1, File: key.file, BuildID: key.buildID,
			HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
		}
		b.modules[key] = known
		b.profile.Mapping = append(b.profile.Mapping, known)
	}
	return known
}

// pageBytes is the grain of a mapping's ends.
const pageBytes = 4096

// extend widens a mapping to hold a frame. A recording keeps addresses, not mappings: the
// range is that of the addresses seen.
func extend(m *profile.Mapping, f recording.Frame) {
	address := uint64(f.Address)
	if address == 0 || address > 1<<63 {
		return
	}
	start, limit := address&^(pageBytes-1), address&^(pageBytes-1)+pageBytes
	if m.Limit == 0 {
		m.Start, m.Limit = start, limit
		return
	}
	m.Start, m.Limit = min(m.Start, start), max(m.Limit, limit)
}
