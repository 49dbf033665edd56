package heap

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

// stateSymbols looks main_arena and mp_ up in the library's symbol table or, by its build
// id, in a separate debug file, and returns their addresses in the process; empty when
// there are no symbols.
func stateSymbols(pid int, lib *library) map[string]uint64 {
	image, err := elf.NewFile(lib.file)
	if err != nil {
		return nil
	}
	bias, found := loadBias(image, lib.maps)
	if !found {
		return nil
	}
	if addresses := lookup(image, bias); addresses != nil {
		return addresses
	}
	id := buildID(image)
	if len(id) < 3 {
		return nil
	}
	for _, root := range []string{fmt.Sprintf("/proc/%d/root", pid), ""} {
		if addresses := debugSymbols(root, id, bias); addresses != nil {
			return addresses
		}
	}
	return nil
}

// debugSymbols looks in the debug file of a build id beneath root, without leaving it.
func debugSymbols(root, id string, bias uint64) map[string]uint64 {
	beneath, err := os.OpenRoot(root + "/")
	if err != nil {
		return nil
	}
	defer beneath.Close()
	file, err := beneath.Open("usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug")
	if err != nil {
		return nil
	}
	defer file.Close()
	image, err := elf.NewFile(file)
	if err != nil {
		return nil
	}
	return lookup(image, bias)
}

// lookup returns the addresses of both symbols, or nil.
func lookup(image *elf.File, bias uint64) map[string]uint64 {
	symbols, err := image.Symbols()
	if err != nil {
		return nil
	}
	addresses := map[string]uint64{}
	for _, s := range symbols {
		if (s.Name == "main_arena" || s.Name == "mp_") && elf.ST_TYPE(s.Info) == elf.STT_OBJECT {
			addresses[s.Name] = s.Value + bias
		}
	}
	if len(addresses) != 2 {
		return nil
	}
	return addresses
}

// loadBias is what must be added to the file's addresses to get those of the process.
func loadBias(image *elf.File, maps []*procfs.ProcMap) (uint64, bool) {
	for _, segment := range image.Progs {
		if segment.Type != elf.PT_LOAD {
			continue
		}
		for _, m := range maps {
			if offset := uint64(m.Offset); offset <= segment.Off && segment.Off-offset < uint64(m.EndAddr-m.StartAddr) {
				return uint64(m.StartAddr) + segment.Off - offset - segment.Vaddr, true
			}
		}
	}
	return 0, false
}

// buildID returns the file's GNU build id in hexadecimal, empty when it has none.
func buildID(image *elf.File) string {
	section := image.Section(".note.gnu.build-id")
	if section == nil || section.Size > 1<<10 {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) < 16 {
		return ""
	}
	name, size := uint64(image.ByteOrder.Uint32(note)), uint64(image.ByteOrder.Uint32(note[4:]))
	start := 12 + alignUp(name, 4)
	if start+size > uint64(len(note)) || start+size < start {
		return ""
	}
	return hex.EncodeToString(note[start : start+size])
}
