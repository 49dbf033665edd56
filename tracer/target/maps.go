package target

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Mapping is one mapping of the process's memory.
type Mapping struct {
	Start, End uint64
	Offset     uint64 // in the file
	Path       string // as the process sees it; "[vdso]" and the like for the kernel's own
	Major      uint32 // of the file's device
	Minor      uint32
	Inode      uint64 // 0 for memory without a file
	Executable bool
	Writable   bool
	// Deleted: the path no longer leads to this file.
	Deleted bool
}

// maxMappings bounds how many mappings are kept; the kernel's own default limit is 65 530.
const maxMappings = 1 << 20

// sameFile tells whether both map the same file.
func (m Mapping) sameFile(other Mapping) bool {
	return m.Inode != 0 && m.Inode == other.Inode && m.Major == other.Major && m.Minor == other.Minor
}

// readMappings reads all mappings.
func (t *Target) readMappings() ([]Mapping, error) {
	f, err := t.openProc("maps", 0)
	if err != nil {
		return nil, t.readRefusal(err)
	}
	defer f.Close()
	mappings, err := parseMaps(f)
	if err != nil {
		return nil, t.readRefusal(err)
	}
	for i := range mappings {
		mappings[i].Path = t.ownPath(mappings[i].Path)
	}
	return mappings, nil
}

// ownPath turns a path that the kernel gave to this program into the process's own: that of
// a process with another root directory begins with where that is.
func (t *Target) ownPath(path string) string {
	if t.rootPath == "" || t.rootPath == "/" {
		return path
	}
	if rest, inside := strings.CutPrefix(path, t.rootPath); inside && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

// parseMaps reads the text of /proc/PID/maps (proc_pid_maps(5)).
func parseMaps(r io.Reader) ([]Mapping, error) {
	var mappings []Mapping
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 8192), 1<<16)
	for scanner.Scan() {
		m, err := parseMapping(scanner.Text())
		if err != nil {
			return nil, fmt.Errorf("mapping %.80q: %w", scanner.Text(), err)
		}
		if len(mappings) == maxMappings {
			return nil, fmt.Errorf("more than %d mappings", maxMappings)
		}
		mappings = append(mappings, m)
	}
	return mappings, scanner.Err()
}

// unescape undoes what the kernel does to newlines in paths.
var unescape = strings.NewReplacer(`\012`, "\n")

// parseMapping reads one line: start-end perms offset major:minor inode path.
func parseMapping(line string) (Mapping, error) {
	var fields [5]string
	rest := line
	for i := range fields {
		var found bool
		fields[i], rest, found = strings.Cut(strings.TrimLeft(rest, " "), " ")
		if !found && i < len(fields)-1 {
			return Mapping{}, errors.New("too few fields")
		}
	}
	start, end, _ := strings.Cut(fields[0], "-")
	major, minor, _ := strings.Cut(fields[3], ":")
	m := Mapping{Executable: strings.Contains(fields[1], "x"), Writable: strings.Contains(fields[1], "w")}
	var maj, min uint64
	for _, number := range []struct {
		text string
		base int
		into *uint64
	}{{start, 16, &m.Start}, {end, 16, &m.End}, {fields[2], 16, &m.Offset}, {major, 16, &maj}, {minor, 16, &min}, {fields[4], 10, &m.Inode}} {
		value, err := strconv.ParseUint(number.text, number.base, 64)
		if err != nil {
			return Mapping{}, fmt.Errorf("number %q", number.text)
		}
		*number.into = value
	}
	if m.End < m.Start {
		return Mapping{}, errors.New("ends before it starts")
	}
	m.Major, m.Minor = uint32(maj), uint32(min)
	m.Path = unescape.Replace(strings.TrimLeft(rest, " "))
	if path, deleted := strings.CutSuffix(m.Path, " (deleted)"); deleted && m.Inode != 0 {
		m.Path, m.Deleted = path, true
	}
	return m, nil
}
