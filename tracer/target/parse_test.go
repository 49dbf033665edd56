package target

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

func TestParseContainer(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for _, test := range []struct{ name, cgroup, want string }{
		{"host", "0::/user.slice/user-1000.slice/session-1.scope\n", ""},
		{"no line", "", ""},
		{"docker, systemd", "0::/system.slice/docker-" + id + ".scope\n", "docker:0123456789ab"},
		{"docker, version 1", "12:cpu:/docker/" + id + "\n11:memory:/docker/" + id + "\n", "docker:0123456789ab"},
		{"podman", "0::/machine.slice/libpod-" + id + ".scope/container\n", "podman:0123456789ab"},
		{"kubernetes, containerd", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-" + id + ".scope\n", "kubernetes:0123456789ab"},
		{"kubernetes, docker", "3:cpu:/kubepods/besteffort/pod1/" + id + "\n", "kubernetes:0123456789ab"},
		{"lxc", "0::/lxc.payload.web/system.slice\n", "lxc:web"},
		{"a service that is called docker", "0::/system.slice/docker.service\n", ""},
		{"torn line", "0:", ""},
	} {
		if got := parseContainer(test.cgroup); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestParseMapping(t *testing.T) {
	for _, test := range []struct {
		line string
		want Mapping
	}{
		{"7f0000000000-7f0000002000 r-xp 00001000 fe:01 123                        /usr/lib/libc.so.6",
			Mapping{Start: 0x7f0000000000, End: 0x7f0000002000, Offset: 0x1000, Path: "/usr/lib/libc.so.6", Major: 0xfe, Minor: 1, Inode: 123, Executable: true}},
		{"1000-2000 rw-p 00000000 00:00 0 ", Mapping{Start: 0x1000, End: 0x2000, Writable: true}},
		{"1000-2000 rw-p 00000000 00:00 0", Mapping{Start: 0x1000, End: 0x2000, Writable: true}},
		{"1000-2000 r-xp 00000000 00:00 0                          [vdso]", Mapping{Start: 0x1000, End: 0x2000, Path: "[vdso]", Executable: true}},
		{"1000-2000 r-xp 00000000 08:01 7 /a dir/with  spaces", Mapping{Start: 0x1000, End: 0x2000, Path: "/a dir/with  spaces", Major: 8, Minor: 1, Inode: 7, Executable: true}},
		{`1000-2000 r--p 00000000 08:01 7 /new\012line (deleted)`, Mapping{Start: 0x1000, End: 0x2000, Path: "/new\nline", Major: 8, Minor: 1, Inode: 7, Deleted: true}},
	} {
		got, err := parseMapping(test.line)
		if err != nil || got != test.want {
			t.Errorf("%q: %+v, %v, want %+v", test.line, got, err, test.want)
		}
	}
	for _, line := range []string{"", "1000-2000", "x-2000 r-xp 0 0:0 0", "2000-1000 r-xp 0 0:0 0", "1000-2000 r-xp 0 0 0"} {
		if got, err := parseMapping(line); err == nil {
			t.Errorf("%q: %+v, want an error", line, got)
		}
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b) c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 12345 1 2 3"
	got, err := parseStat([]byte(line))
	if want := (procStat{comm: "a) b) c", state: 'S', flags: 4194560, threads: 3, start: 12345}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, torn := range []string{"", "42", ")(", "42 (a) S 1"} {
		if _, err := parseStat([]byte(torn)); err == nil {
			t.Errorf("%q: no error", torn)
		}
	}
}

func FuzzCgroup(f *testing.F) {
	id := strings.Repeat("0123456789abcdef", 4)
	f.Add("0::/system.slice/docker-" + id + ".scope\n")
	f.Add("3:cpu:/kubepods/besteffort/pod1/" + id + "\n")
	f.Add("0::/lxc.payload.web")
	f.Add("0:::::/../../..")
	f.Fuzz(func(t *testing.T, text string) {
		if name := parseContainer(text); name != "" && !strings.Contains(name, ":") {
			t.Errorf("container %q", name)
		}
	})
}

func FuzzMaps(f *testing.F) {
	f.Add("7f0000000000-7f0000002000 r-xp 00001000 fe:01 123   /usr/lib/libc.so.6\n1000-2000 rw-p 00000000 00:00 0\n")
	f.Add("1000-2000 r--p 00000000 08:01 7 /x (deleted)\n")
	f.Fuzz(func(t *testing.T, text string) {
		mappings, err := parseMaps(strings.NewReader(text))
		for _, m := range mappings {
			if err == nil && m.End < m.Start {
				t.Errorf("%+v ends before it starts", m)
			}
		}
	})
}

// bytesFile is a file in memory.
type bytesFile struct{ *bytes.Reader }

func (bytesFile) Close() error { return nil }

// FuzzAllocator: no file makes the search for an allocator panic, run on, or report an
// entry outside the file's code.
func FuzzAllocator(f *testing.F) {
	f.Add(forgedLibrary("malloc", "free", "__libc_malloc", "__libc_memalign"))
	f.Add(forgedLibrary("malloc", "mallctl", "_Znwm"))
	f.Add(forgedLibrary("mi_malloc", "mi_version"))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, file []byte) {
		a, err := inspect(bytesFile{bytes.NewReader(file)}, "fuzz")
		if err != nil {
			return
		}
		for _, entry := range a.Entries {
			if entry.Choice.Offset > maxCode {
				t.Errorf("%s: offset %d", entry.Name, entry.Choice.Offset)
			}
		}
	})
}

func TestInspectForgedLibrary(t *testing.T) {
	a, err := inspect(bytesFile{bytes.NewReader(forgedLibrary("malloc", "free", "__libc_malloc", "__libc_memalign"))}, "forged")
	if err != nil || a.Name != "glibc" || len(a.Entries) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	if malloc, _ := a.Find("malloc"); malloc.Choice.Offset != 0 || malloc.Choice.Cost != 1 {
		t.Errorf("malloc: %+v", malloc.Choice)
	}
}

// forgedLibrary is a small shared library for x86-64 that defines the functions, each a push
// and a return: a program header, and sections for the names, symbols and section names.
func forgedLibrary(functions ...string) []byte {
	const headerSize, programHeader, codeAt, codeSize, sectionHeader = 64, 56, 0x1000, 0x100, 64
	strs := []byte{0}
	symbols := make([]byte, symbolSize)
	for i, name := range functions {
		var symbol bytes.Buffer
		binary.Write(&symbol, binary.LittleEndian, elf.Sym64{Name: uint32(len(strs)), Info: byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC), Shndx: 3,
			Value: codeAt + uint64(i)*16, Size: 16})
		symbols = append(symbols, symbol.Bytes()...)
		strs = append(append(strs, name...), 0)
	}
	code := bytes.Repeat(append([]byte{0x55, 0xc3}, make([]byte, 14)...), codeSize/16)
	sections := []elf.Section64{
		{},
		{Type: uint32(elf.SHT_DYNSYM), Off: codeAt + codeSize, Size: uint64(len(symbols)), Link: 2, Entsize: symbolSize},
		{Type: uint32(elf.SHT_STRTAB), Off: codeAt + codeSize + uint64(len(symbols)), Size: uint64(len(strs))},
		{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: codeAt, Off: codeAt, Size: codeSize},
	}
	var file bytes.Buffer
	header := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: headerSize, Phnum: 1, Phentsize: programHeader,
		Ehsize: headerSize, Shoff: codeAt + codeSize + uint64(len(symbols)+len(strs)), Shnum: uint16(len(sections)), Shentsize: sectionHeader, Shstrndx: 2}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	binary.Write(&file, binary.LittleEndian, header)
	binary.Write(&file, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: codeAt, Vaddr: codeAt, Filesz: codeSize, Memsz: codeSize})
	file.Write(make([]byte, codeAt-file.Len()))
	file.Write(code)
	file.Write(symbols)
	file.Write(strs)
	binary.Write(&file, binary.LittleEndian, sections)
	return file.Bytes()
}

// FuzzStat: a process names itself, so the line holds what it likes between the parentheses.
func FuzzStat(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add([]byte("1 (a) (b) R 1 2) S 0 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 3 0 77 1 1"))
	f.Add([]byte("1 )("))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStat(text)
		if err == nil && len(s.comm) > len(text) {
			t.Fatalf("%+v", s)
		}
	})
}
