package symbolize

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/workload"
)

// countingReader counts the bytes that are read.
type countingReader struct {
	io.ReaderAt
	bytes int64
}

func (c *countingReader) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, offset)
	c.bytes += int64(n)
	return n, err
}

func TestNamingTenAddressesReadsTheSymbolTableAndLittleElse(t *testing.T) {
	file, err := os.Open(workload.Build(t, "big.S"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	reader := &countingReader{ReaderAt: file}
	f, err := NewFile(reader, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	table := f.elf.SectionByType(elf.SHT_SYMTAB)
	const number = 10
	start := f.Symbols("big_functions")["big_functions"].Address
	reader.bytes = 0
	f.drop()
	for i := uint64(0); i < number; i++ {
		symbol, ok := f.FunctionAt(start + i*9999*16 + 1)
		if want := fmt.Sprintf("big_function_%d", i*9999); !ok || symbol.Name != want {
			t.Fatalf("function %d is %q, want %q", i*9999, symbol.Name, want)
		}
	}
	if limit := int64(table.Size) + number*1024; reader.bytes > limit {
		t.Errorf("read %d bytes of %d, more than the table's %d and a little", reader.bytes, info.Size(), limit)
	}
	if cost := f.cost(); cost > 24*100_100 {
		t.Errorf("holds %d bytes for 100 000 symbols", cost)
	}
}

// manyUnits links n copies of a C++ unit that has much debug information; unit N is entered
// at the function unit_N.
func manyUnits(t testing.TB, n int) string {
	t.Helper()
	directory := t.TempDir()
	in := func(name string) string { return filepath.Join(directory, name) }
	source := "#include <map>\n#include <string>\n#include <vector>\n" +
		"static inline int inlined_step(std::map<std::string, int> &m) { m[\"a\"]++; return m.size(); }\n" +
		"extern \"C\" int unit_entry(int n) { std::map<std::string, int> m; return inlined_step(m) + n; }\n"
	main := "int main(void) { return 0; }\n"
	for name, text := range map[string]string{"unit.cc": source, "main.cc": main} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command(t, "g++", "-O2", "-g", "-c", "-o", in("unit.o"), in("unit.cc"))
	arguments := []string{"-o", in("program"), in("main.cc")}
	for i := range n {
		object := in(fmt.Sprintf("unit%d.o", i))
		command(t, "objcopy", fmt.Sprintf("--redefine-sym=unit_entry=unit_%d", i), in("unit.o"), object)
		arguments = append(arguments, object)
	}
	command(t, "g++", arguments...)
	return in("program")
}

func TestOnlyTheUnitsThatAreAskedForAreTouched(t *testing.T) {
	const units = 40
	f, err := OpenFile(manyUnits(t, units))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbol := f.Symbols("unit_7")["unit_7"]
	found := false
	for address := symbol.Address; address < symbol.Address+symbol.Size; address++ {
		for _, p := range f.positions(address) {
			found = found || (p.function == "inlined_step" && p.inlined && filepath.Base(p.file) == "unit.cc")
		}
	}
	if !found {
		t.Error("inlined_step is not found in unit_7")
	}
	info := f.lines.data(".debug_info")
	if len(f.lines.units) < units || len(f.lines.decoded) > 2 {
		t.Errorf("%d of %d units are decoded, want those of one address range", len(f.lines.decoded), len(f.lines.units))
	}
	if resident := residentBytes(t, f.path); resident > int64(len(info))/4 {
		t.Errorf("%d bytes of the file are in memory, of %d bytes of debug information", resident, len(info))
	}
}

// residentBytes returns how much of a mapped file this process has in memory.
func residentBytes(t *testing.T, path string) int64 {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	total, ours := int64(0), false
	for line := range strings.Lines(string(smaps)) {
		if fields := strings.Fields(line); strings.Contains(fields[0], "-") {
			ours = strings.HasSuffix(strings.TrimSpace(line), path)
		} else if ours && fields[0] == "Rss:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			total += kib << 10
		}
	}
	return total
}

// TestTruncatedUnderUs cuts a file short while its debug information is mapped: touching what
// is gone raises SIGBUS.
func TestTruncatedUnderUs(t *testing.T) {
	program := workload.Build(t, "frames.c", "-static")
	f, err := OpenFile(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbol := f.Symbols("outer_function")["outer_function"]
	if positions := f.positions(symbol.Address + 1); len(positions) == 0 {
		t.Fatal("no lines before the file is cut")
	}
	clear(f.lines.decoded)
	if err := os.Truncate(program, 4096); err != nil {
		t.Fatal(err)
	}
	if positions := f.positions(symbol.Address + 1); len(positions) != 0 {
		t.Errorf("lines %+v from a file that is gone", positions)
	}
}

// BenchmarkTenAddresses names ten addresses of a program with much debug information, from
// opening the file on.
func BenchmarkTenAddresses(b *testing.B) {
	const units = 100
	program := manyUnits(b, units)
	out, err := exec.Command("nm", program).Output()
	if err != nil {
		b.Fatal(err)
	}
	var addresses []uint64
	for line := range bytes.Lines(out) {
		if fields := bytes.Fields(line); len(fields) == 3 && bytes.HasPrefix(fields[2], []byte("unit_")) && len(addresses) < 10 {
			address, _ := strconv.ParseUint(string(fields[0]), 16, 64)
			addresses = append(addresses, address+20)
		}
	}
	for b.Loop() {
		f, err := OpenFile(program)
		if err != nil {
			b.Fatal(err)
		}
		for _, address := range addresses {
			symbol, _ := f.FunctionAt(address)
			if !strings.HasPrefix(symbol.Name, "unit_") || len(f.positions(address)) == 0 {
				b.Fatalf("%#x is not named", address)
			}
		}
		f.Close()
	}
	if info, err := os.Stat(program); err == nil {
		b.ReportMetric(float64(info.Size())/(1<<20), "MiB/file")
	}
}
