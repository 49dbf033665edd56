package symbolize

import (
	"bytes"
	"os"
)

// Limits of what is held for the files that a process has mapped.
const (
	maxHandles = 1024     // files held open
	maxHeld    = 64 << 20 // bytes of symbols and lines kept in memory
)

// module is a file that the process has mapped, or had.
type module struct {
	path   string
	handle *os.File // held from the moment the mapping was seen, until the file is read
	file   *File
	failed bool   // file is nil for good
	closed bool   // the file could not even be opened; otherwise it is no ELF file
	used   uint64 // when it was last asked, for dropping what is not asked again
}

// fileKey tells files apart. While a handle is held the kernel gives its inode to no other.
type fileKey struct{ dev, inode uint64 }

// modules are the files behind the mappings.
type modules struct {
	process *process
	byFile  map[fileKey]*module
	vdso    *module
	handles int
	clock   uint64
}

// attach gives the regions their modules. The files of executable mappings are opened now,
// while the process lives; what else shows the same file (its data) shares the module.
func (ms *modules) attach(regions []*region) {
	for _, r := range regions {
		switch {
		case r.Path == "[vdso]":
			r.module = ms.readVDSO(r.Mapping)
		case r.Exec && r.FileBacked():
			r.module = ms.moduleOf(r.Mapping)
		}
	}
	for _, r := range regions {
		if r.module == nil && r.FileBacked() {
			r.module = ms.byFile[fileKey{r.Dev, r.Inode}]
		}
	}
}

// moduleOf returns the module of a mapping's file and makes sure that it can be read later.
func (ms *modules) moduleOf(m Mapping) *module {
	key := fileKey{m.Dev, m.Inode}
	found := ms.byFile[key]
	if found == nil {
		found = &module{path: m.Path}
		ms.byFile[key] = found
	}
	if found.file == nil && found.handle == nil && ms.handles < maxHandles {
		if file, err := ms.process.openMapping(m); err == nil {
			found.handle, found.failed, found.closed = file, false, false
			ms.handles++
		}
	}
	return found
}

// readVDSO copies the vdso, which is no file, out of the process once.
func (ms *modules) readVDSO(m Mapping) *module {
	if ms.vdso != nil {
		return ms.vdso
	}
	image, err := ms.process.memory(m, maxVDSO)
	if err != nil {
		return nil
	}
	file, err := NewFile(bytes.NewReader(image), int64(len(image)))
	if err != nil {
		return nil
	}
	ms.vdso = &module{path: m.Path, file: file}
	return ms.vdso
}

// fileOf returns the module's ELF file; nil when it is none or cannot be read.
func (ms *modules) fileOf(r *region) *File {
	m := r.module
	if m == nil {
		return nil
	}
	ms.clock++
	m.used = ms.clock
	if m.file != nil || m.failed {
		return m.file
	}
	handle := m.handle
	if handle == nil {
		var err error
		if handle, err = ms.process.openMapping(r.Mapping); err != nil {
			m.failed, m.closed = true, true
			return nil
		}
		ms.handles++
	}
	m.handle = nil
	file, err := adopt(handle, m.path, ms.process.debugFiles)
	if err != nil {
		ms.handles--
		m.failed = true
		return nil
	}
	m.file = file
	return file
}

// shrink forgets symbols and lines of the files that have not been asked for longest, until
// what is held is within the limit. They are read again when they are asked again.
func (ms *modules) shrink() {
	for {
		var oldest *module
		total, count := int64(0), 0
		for _, m := range ms.byFile {
			if m.file == nil {
				continue
			}
			m.file.mu.Lock()
			cost := m.file.cost()
			m.file.mu.Unlock()
			total += cost
			if cost > 0 {
				count++
				if oldest == nil || m.used < oldest.used {
					oldest = m
				}
			}
		}
		if total <= maxHeld || count < 2 {
			return
		}
		oldest.file.mu.Lock()
		oldest.file.drop()
		oldest.file.mu.Unlock()
	}
}

func (ms *modules) close() {
	for _, m := range ms.byFile {
		if m.file != nil {
			m.file.Close()
		}
		if m.handle != nil {
			m.handle.Close()
		}
	}
}
