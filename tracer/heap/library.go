package heap

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// ErrNotGlibc tells that no glibc was found in the process: another C library, another
// allocator linked in, or a program without one.
var ErrNotGlibc = errors.New("no glibc in the process")

// maxLibraryBytes bounds what is read of a file that belongs to the target.
const maxLibraryBytes = 512 << 20

var (
	libraryName = regexp.MustCompile(`^libc(-2\.\d+\.so|\.so\.6)$`)
	banner      = regexp.MustCompile(`GNU C Library \([^)\n]{0,100}\)[^\n\x00]{0,40} version (2\.(\d{1,3}))`)
)

// library is the file that holds glibc in the target: the shared library, or the program
// itself when it is linked statically.
type library struct {
	path    string // as the target sees it
	version string // "2.36", empty when the file does not say
	minor   int
	file    *os.File
	maps    []*procfs.ProcMap
	data    []span // where its writable data lies
	static  bool
}

// span is a range of addresses.
type span struct{ start, end uint64 }

func (s span) contains(address uint64) bool { return address >= s.start && address < s.end }

// findLibrary picks the C library's mapping, else the program itself, and reads the version.
func findLibrary(pid int, maps []*procfs.ProcMap) (*library, error) {
	for _, m := range maps {
		if m.Offset == 0 && libraryName.MatchString(path.Base(strings.TrimSuffix(m.Pathname, " (deleted)"))) {
			return openLibrary(pid, maps, m, false)
		}
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return nil, fmt.Errorf("find the program of process %d: %w", pid, err)
	}
	for _, m := range maps {
		if m.Pathname == exe {
			return openLibrary(pid, maps, m, true)
		}
	}
	return nil, fmt.Errorf("%w: neither a libc.so.6 nor the program %s is mapped", ErrNotGlibc, exe)
}

func openLibrary(pid int, maps []*procfs.ProcMap, first *procfs.ProcMap, static bool) (*library, error) {
	lib := &library{path: first.Pathname, static: static}
	for i, m := range maps {
		if m.Inode != first.Inode || m.Dev != first.Dev || m.Pathname != first.Pathname {
			continue
		}
		lib.maps = append(lib.maps, m)
		if m.Perms.Write && m.Perms.Private {
			data := spanOf(m)
			if i+1 < len(maps) && maps[i+1].Inode == 0 && uint64(maps[i+1].StartAddr) == data.end && maps[i+1].Pathname == "" {
				data.end = uint64(maps[i+1].EndAddr) // .bss beyond the file's last page
			}
			lib.data = append(lib.data, data)
		}
	}
	var err error
	if lib.file, err = openMapped(pid, first); err != nil {
		return nil, err
	}
	if err := lib.readVersion(); err != nil {
		lib.file.Close()
		return nil, err
	}
	return lib, nil
}

func spanOf(m *procfs.ProcMap) span { return span{uint64(m.StartAddr), uint64(m.EndAddr)} }

// openMapped opens the very file behind a mapping, deleted or in another mount namespace
// as it may be; where map_files is not allowed, by its path beneath the target's root.
func openMapped(pid int, m *procfs.ProcMap) (*os.File, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.StartAddr, m.EndAddr))
	if err == nil {
		return file, nil
	}
	root, rootErr := os.OpenRoot(fmt.Sprintf("/proc/%d/root", pid))
	if rootErr != nil {
		return nil, fmt.Errorf("open %s as the target sees it: %w", m.Pathname, rootErr)
	}
	defer root.Close()
	file, rootErr = root.Open(strings.TrimPrefix(m.Pathname, "/"))
	if rootErr != nil {
		return nil, fmt.Errorf("open %s as the target sees it: %w", m.Pathname, errors.Join(err, rootErr))
	}
	return file, nil
}

// readVersion looks for the banner that every shared glibc prints when it is run.
func (lib *library) readVersion() error {
	var magic [20]byte
	if _, err := lib.file.ReadAt(magic[:], 0); err != nil || !bytes.HasPrefix(magic[:], []byte(elf.ELFMAG)) {
		return fmt.Errorf("%w: %s is not an ELF file", ErrNotGlibc, lib.path)
	}
	if elf.Class(magic[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(magic[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return fmt.Errorf("%s is not a 64-bit little-endian file: only x86-64 and arm64 heaps can be read", lib.path)
	}
	const block, overlap = 1 << 20, 256
	section := io.NewSectionReader(lib.file, 0, maxLibraryBytes)
	buffer := make([]byte, 0, block+overlap)
	for {
		n, err := io.ReadFull(section, buffer[len(buffer):min(cap(buffer), len(buffer)+block)])
		buffer = buffer[:len(buffer)+n]
		if match := banner.FindSubmatch(buffer); match != nil {
			lib.version = string(match[1])
			lib.minor, _ = strconv.Atoi(string(match[2]))
			return nil
		}
		if err != nil {
			return nil
		}
		keep := buffer[len(buffer)-min(overlap, len(buffer)):]
		buffer = append(buffer[:0], keep...)
	}
}
