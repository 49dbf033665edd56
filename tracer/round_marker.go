package tracer

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/symbolize"
	"memtrace/tracer/probe"
	"memtrace/tracer/target"
)

// markerPlaces finds a marker in the files that the target has mapped. It may stand in
// several places: all are boundaries.
func (t *tracee) markerPlaces(s roundSpec) ([]roundPlace, error) {
	type identity struct {
		major, minor uint32
		inode        uint64
	}
	var places []roundPlace
	known := []string{}
	seen := map[identity]bool{}
	for _, m := range t.target.Mappings {
		file := identity{m.Major, m.Minor, m.Inode}
		if m.Inode == 0 || seen[file] {
			continue
		}
		seen[file] = true
		place := roundPlace{mapping: m}
		for _, marker := range t.markersOf(m) {
			known = append(known, marker.Provider+":"+marker.Name)
			if marker.Provider == s.path && marker.Name == s.name {
				place.sites = append(place.sites, probe.Site{Offset: marker.Offset, Semaphore: marker.Semaphore})
			}
		}
		if len(place.sites) > 0 {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return nil, &RoundError{Spec: t.options.Round, Reason: noMarker(known, s)}
	}
	return places, nil
}

// markersOf reads a mapped file's markers; a file that cannot be read has none.
func (t *tracee) markersOf(m target.Mapping) []symbolize.Marker {
	file, err := t.target.OpenMapped(m)
	if err != nil {
		return nil
	}
	defer file.Close()
	facts, err := file.Stat()
	if err != nil {
		return nil
	}
	parsed, err := symbolize.NewFile(file, facts.Size())
	if err != nil {
		return nil
	}
	defer parsed.Close()
	markers, err := parsed.Markers()
	if err != nil {
		return nil
	}
	return markers
}

// noMarker says which markers there are, those of the same provider first.
func noMarker(known []string, s roundSpec) string {
	const told = 12
	slices.Sort(known)
	known = slices.Compact(known)
	if len(known) == 0 {
		return "none of the process's files has markers"
	}
	slices.SortStableFunc(known, func(a, b string) int {
		of := func(name string) int {
			switch provider, marker, _ := strings.Cut(name, ":"); {
			case marker == s.name:
				return 0
			case provider == s.path:
				return 1
			}
			return 2
		}
		return of(a) - of(b)
	})
	more := ""
	if len(known) > told {
		more = fmt.Sprintf(" and %d more", len(known)-told)
		known = known[:told]
	}
	return "the process has no such marker; it has " + strings.Join(known, ", ") + more
}
