package symbolize

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of a /proc/PID/maps text. The kernel's default is 65 530 mappings a process.
const (
	maxMappings    = 1 << 20
	maxMappingLine = 64 << 10
	deletedSuffix  = " (deleted)"
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64 // addresses in the process, End exclusive
	Offset     uint64 // of Start within the file, in bytes
	Dev, Inode uint64 // of the file, Dev as in stat(2); both 0 without a file
	Path       string // as the kernel names it, or "[stack]", "[vdso]", …; "" for anonymous memory
	Read       bool
	Write      bool
	Exec       bool
	Deleted    bool // the file has lost its name; Path is the one it had
}

// FileBacked says whether the mapping shows a file.
func (m Mapping) FileBacked() bool { return m.Inode != 0 && strings.HasPrefix(m.Path, "/") }

// Contains says whether the address lies in the mapping.
func (m Mapping) Contains(address uint64) bool { return m.Start <= address && address < m.End }

// ReadMaps reads the mappings of a live process, in order of their addresses.
func ReadMaps(pid int) ([]Mapping, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, fmt.Errorf("read the mappings of process %d: %w", pid, err)
	}
	defer file.Close()
	return ParseMaps(file)
}

// ParseMaps reads the text of a /proc/PID/maps, in order of the addresses.
func ParseMaps(text io.Reader) ([]Mapping, error) {
	scanner := bufio.NewScanner(text)
	scanner.Buffer(nil, maxMappingLine)
	var mappings []Mapping
	for scanner.Scan() {
		if len(mappings) == maxMappings {
			return nil, fmt.Errorf("more than %d mappings", maxMappings)
		}
		mapping, err := parseMapping(scanner.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d of the mappings: %w", len(mappings)+1, err)
		}
		mappings = append(mappings, mapping)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read the mappings: %w", err)
	}
	return mappings, nil
}

var errMapping = errors.New("not of the form start-end perms offset dev inode path")

// parseMapping reads one line: "start-end rwxp offset major:minor inode   path".
func parseMapping(line []byte) (Mapping, error) {
	var fields [5]string
	rest := line
	for i := range fields {
		field, after, _ := bytes.Cut(rest, []byte(" "))
		fields[i], rest = string(field), after
	}
	start, end, ok := cutHex(fields[0], "-")
	if !ok || start >= end || len(fields[1]) != 4 {
		return Mapping{}, errMapping
	}
	offset, err := strconv.ParseUint(fields[2], 16, 64)
	if err != nil {
		return Mapping{}, errMapping
	}
	major, minor, ok := cutHex(fields[3], ":")
	if !ok || major > 1<<32-1 || minor > 1<<32-1 {
		return Mapping{}, errMapping
	}
	inode, err := strconv.ParseUint(fields[4], 10, 64)
	if err != nil {
		return Mapping{}, errMapping
	}
	path, deleted := mappingPath(string(bytes.TrimLeft(rest, " ")), inode)
	return Mapping{
		Start: start, End: end, Offset: offset,
		Dev: unix.Mkdev(uint32(major), uint32(minor)), Inode: inode,
		Path: path, Deleted: deleted,
		Read: fields[1][0] == 'r', Write: fields[1][1] == 'w', Exec: fields[1][2] == 'x',
	}, nil
}

// mappingPath undoes what the kernel does to a path: it marks a removed file and writes a
// newline, which would end the line, as \012.
func mappingPath(path string, inode uint64) (string, bool) {
	deleted := false
	if inode != 0 {
		path, deleted = strings.CutSuffix(path, deletedSuffix)
	}
	return strings.ReplaceAll(path, `\012`, "\n"), deleted
}

// cutHex reads two hexadecimal numbers around a separator.
func cutHex(text, separator string) (uint64, uint64, bool) {
	left, right, found := strings.Cut(text, separator)
	if !found {
		return 0, 0, false
	}
	a, err := strconv.ParseUint(left, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	b, err := strconv.ParseUint(right, 16, 64)
	return a, b, err == nil
}
