package symbolize

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits of a perf map.
const (
	maxPerfMap     = 64 << 20 // bytes of the file
	maxPerfSymbols = 512 << 10
	maxPerfName    = 1024 // bytes of a name; more is cut off
)

// perfMap names the functions that a just-in-time compiler made. The compiler appends a
// line "start size name" for each; where it reuses memory, the later line holds.
type perfMap struct {
	file    *os.File // nil where there is none that can be believed
	read    int64    // bytes of the file that were read
	symbols []perfSymbol
}

type perfSymbol struct {
	start, end uint64
	line       int // of the file: later ones hold
	name       string
}

// openPerfMap opens /tmp/perf-PID.map in the target's root, if it is a regular file that
// belongs to the target's user or to root, and to no other name.
func openPerfMap(p *process) (*perfMap, error) {
	uid, inner, err := p.status()
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/tmp/perf-%d.map", inner)
	file, err := p.openBeneath(path, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(file, uid); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s of process %d: %w", path, p.pid, err)
	}
	return &perfMap{file: file}, nil
}

// checkOwner refuses a file that somebody else could have put there.
func checkOwner(file *os.File, uid uint32) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || (stat.Uid != uid && stat.Uid != 0) {
		return fmt.Errorf("belongs to user %d, neither to the process's user %d nor to root", stat.Uid, uid)
	}
	if stat.Nlink > 1 {
		return fmt.Errorf("is a link to a file of another name")
	}
	return nil
}

// lookup returns the name of the code at an address, reading what has been appended to the
// file since the last time; false when the map does not have it.
func (m *perfMap) lookup(address uint64) (string, bool) {
	if m == nil {
		return "", false
	}
	m.update()
	i := sort.Search(len(m.symbols), func(i int) bool { return m.symbols[i].start > address })
	best := -1
	for j := i - 1; j >= 0 && i-j <= maxAliases; j-- {
		if s := m.symbols[j]; address < s.end && (best < 0 || s.line > m.symbols[best].line) {
			best = j
		}
	}
	if best < 0 {
		return "", false
	}
	return m.symbols[best].name, true
}

// update reads the whole lines that the file has grown by.
func (m *perfMap) update() {
	if m.file == nil {
		return
	}
	info, err := m.file.Stat()
	if err != nil || info.Size() <= m.read || m.read >= maxPerfMap {
		return
	}
	grown := io.NewSectionReader(m.file, m.read, min(info.Size(), maxPerfMap)-m.read)
	symbols, n, err := parsePerfMap(grown, len(m.symbols))
	m.read += n
	if err != nil || len(symbols) == 0 {
		return
	}
	m.symbols = append(m.symbols, symbols...)
	m.sort()
}

// sort brings the symbols into the order of their addresses, later lines behind earlier ones.
func (m *perfMap) sort() {
	slices.SortFunc(m.symbols, func(a, b perfSymbol) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.line, b.line))
	})
}

// parsePerfMap reads lines "start size name" with hexadecimal numbers. Lines of another form
// are passed over; a last line without its end is left for the next time. It returns the
// bytes it has used. have is how many symbols there are already.
func parsePerfMap(text io.Reader, have int) ([]perfSymbol, int64, error) {
	reader := bufio.NewReaderSize(text, 64<<10)
	var symbols []perfSymbol
	used := int64(0)
	for have+len(symbols) < maxPerfSymbols {
		line, err := reader.ReadSlice('\n')
		if err == bufio.ErrBufferFull { // not a line that names a function
			used += int64(len(line))
			continue
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return symbols, used, err
		}
		used += int64(len(line))
		if s, ok := parsePerfLine(bytes.TrimRight(line, "\r\n")); ok {
			s.line = have + len(symbols)
			symbols = append(symbols, s)
		}
	}
	return symbols, used, nil
}

func parsePerfLine(line []byte) (perfSymbol, bool) {
	first, rest, _ := bytes.Cut(line, []byte(" "))
	second, name, _ := bytes.Cut(rest, []byte(" "))
	start, err := parseHex(first)
	if err != nil {
		return perfSymbol{}, false
	}
	size, err := parseHex(second)
	if err != nil || size == 0 || start > math.MaxUint64-size || len(name) == 0 {
		return perfSymbol{}, false
	}
	name = name[:min(len(name), maxPerfName)]
	return perfSymbol{start: start, end: start + size, name: strings.ToValidUTF8(string(name), "\uFFFD")}, true
}

// parseHex reads a hexadecimal number, with or without its prefix.
func parseHex(digits []byte) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(string(digits), "0x"), 16, 64)
}

func (m *perfMap) close() {
	if m != nil && m.file != nil {
		m.file.Close()
	}
}
