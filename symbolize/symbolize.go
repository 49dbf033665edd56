// Package symbolize turns addresses of a process, living or dead, into the functions, files
// and lines of its source.
//
// A Symbolizer is made while the process lives. It notes what is mapped where and holds the
// files open, so that addresses seen earlier can be named after the process has exited, and
// after a library was unloaded and another took its place. Everything else is read when it
// is asked for: naming ten addresses of a program of 100 MB reads its symbol table and the
// debug information of ten places, no more.
//
// Names come from, best first: .symtab, .gnu_debugdata, the separate debug file (by build id
// or .gnu_debuglink, below the target's own root and on this machine), .dynsym. Files, lines and
// inlined calls come from DWARF where there is some. Just-in-time compiled code is named by
// perf-PID.map, the vdso by the image in the process's memory.
//
// The files belong to the target and may be hostile: they are opened beneath its root
// directory, every size is bounded, and a malformed one costs its own names only.
//
// OpenFile and File serve other packages (tracer and those below it may import this one)
// that look up symbols, build ids and sections of a file by name.
package symbolize

import (
	"sync"

	"memtrace/tracer/recording"
)

// maxCached bounds how many addresses are remembered with their frames.
const maxCached = 64 << 10

// Symbolizer names the addresses of one process. It is safe for use by several goroutines.
type Symbolizer struct {
	mu      sync.Mutex
	process *process
	history history
	modules modules
	jit     *perfMap
	asked   bool // whether jit was looked for since this call began
	missed  bool // whether the cache was of no use since this call began
	cache   map[place]resolved
}

// place is an address as a stack has it.
type place struct {
	region  *region
	address uint64
	exact   bool // the address is of the instruction, not of the one after a call
}

// resolved is what a place stands for.
type resolved struct {
	frames []recording.Frame
	signal bool // the frame is what the kernel put there to deliver a signal
}

// New takes hold of a live process and notes its mappings.
func New(pid int) (*Symbolizer, error) {
	p, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	s := &Symbolizer{
		process: p,
		modules: modules{process: p, byFile: map[fileKey]*module{}},
		cache:   map[place]resolved{},
	}
	if err := s.Refresh(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Refresh reads the process's mappings again: a new snapshot. Files that have been mapped
// since are opened, those that are gone stay known. It returns ErrExited, and changes
// nothing, when the process has exited.
func (s *Symbolizer) Refresh() error {
	mappings, err := s.process.mappings()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := mappings[:0]
	for _, m := range mappings {
		if m.Exec || m.FileBacked() {
			kept = append(kept, m)
		}
	}
	s.asked = false
	fresh := s.history.replace(kept)
	s.modules.attach(fresh)
	for _, r := range s.history.live {
		if r.Exec && r.module == nil {
			s.openJIT()
			break
		}
	}
	return nil
}

// Add notes a mapping that is known from elsewhere (an event of the kernel), as a snapshot of
// its own: whatever it overlaps is gone.
func (s *Symbolizer) Add(m Mapping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Start < m.End && (m.Exec || m.FileBacked()) {
		s.modules.attach([]*region{s.history.add(m)})
	}
}

// Snapshot returns the number of the newest snapshot. Whoever keeps a stack for later keeps
// the number with it: Stack.Snapshot.
func (s *Symbolizer) Snapshot() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.snapshot
}

// Mappings returns the executable and the file mappings of the newest snapshot.
func (s *Symbolizer) Mappings() []Mapping {
	s.mu.Lock()
	defer s.mu.Unlock()
	mappings := make([]Mapping, len(s.history.live))
	for i, r := range s.history.live {
		mappings[i] = r.Mapping
	}
	return mappings
}

// openJIT opens the map of just-in-time compiled code, if there is one by now.
func (s *Symbolizer) openJIT() {
	if s.jit != nil || s.asked {
		return
	}
	s.asked = true
	if m, err := openPerfMap(s.process); err == nil {
		s.jit = m
	}
}

// Close releases the files and the process.
func (s *Symbolizer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modules.close()
	s.jit.close()
	s.process.close()
	return nil
}
