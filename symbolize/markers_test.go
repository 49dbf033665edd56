package symbolize

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// markerFile compiles a program with two markers, one of which has a semaphore.
func markerFile(t testing.TB) *File {
	t.Helper()
	directory := t.TempDir()
	source, program := filepath.Join(directory, "m.c"), filepath.Join(directory, "m")
	text := `#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
__extension__ unsigned short shop_sale_semaphore __attribute__((section(".probes")));
__extension__ unsigned short shop_visit_semaphore __attribute__((section(".probes")));
int main(int argc, char **argv) { DTRACE_PROBE1(shop, sale, argc); DTRACE_PROBE(shop, visit); return 0; }
`
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O2", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	file, err := OpenFile(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// TestMarkers: each marker lies on a no-op of main, its semaphore on the two bytes of the
// variable.
func TestMarkers(t *testing.T) {
	file := markerFile(t)
	markers, err := file.Markers()
	if err != nil || len(markers) != 2 {
		t.Fatalf("markers %+v, %v", markers, err)
	}
	symbols := file.Symbols("shop_sale_semaphore", "shop_visit_semaphore")
	for _, m := range markers {
		if m.Provider != "shop" || m.Name != "sale" && m.Name != "visit" {
			t.Errorf("marker %+v", m)
		}
		address, loaded := file.Address(m.Offset)
		function, _ := file.FunctionAt(address)
		if !loaded || function.Name != "main" {
			t.Errorf("%s lies in %q", m.Name, function.Name)
		}
		if want, _ := file.Offset(symbols["shop_"+m.Name+"_semaphore"].Address); m.Semaphore != want || want == 0 {
			t.Errorf("%s: semaphore at %#x, want %#x", m.Name, m.Semaphore, want)
		}
	}
}

// FuzzMarkers: no note, however broken, makes the parser fail otherwise than by an end.
func FuzzMarkers(f *testing.F) {
	file := markerFile(f)
	data, err := file.SectionData(markerSection, markerLimit)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range file.markersIn(data, binary.LittleEndian, 0) {
			if m.Provider == "" && m.Name == "" && m.Offset == 0 {
				t.Errorf("a marker without anything: %+v", m)
			}
		}
	})
}
