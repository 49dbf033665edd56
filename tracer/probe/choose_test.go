package probe

import (
	"bufio"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// prologue is a line of a fixture: testdata/extract tells where they come from.
type prologue struct {
	build, name, does, choice string
	code                      []byte
}

// operations are the operations by name.
var operations = func() map[string]Operation {
	byName := map[string]Operation{}
	for o := Malloc; int(o) < len(names); o++ {
		byName[o.String()] = o
	}
	return byName
}()

func prologues(t testing.TB) []prologue {
	t.Helper()
	files, err := filepath.Glob("testdata/prologues/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	var all []prologue
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		build := strings.TrimSuffix(filepath.Base(file), ".txt")
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) != 6 || fields[0] == "#" {
				continue
			}
			code, err := hex.DecodeString(fields[5])
			if err != nil {
				t.Fatalf("%s %s: %v", file, fields[0], err)
			}
			all = append(all, prologue{build, fields[0], fields[1], fields[3] + " " + fields[4], code})
		}
		f.Close()
	}
	return all
}

func TestChooseOnLibraries(t *testing.T) {
	for _, p := range prologues(t) {
		choice := Choose(elf.EM_X86_64, p.code, operations[p.does])
		if got := fmt.Sprintf("+%d %s", choice.Offset, choice.Cost); got != p.choice {
			t.Errorf("%s %s: chose %s, want %s", p.build, p.name, got, p.choice)
		}
		if choice.Depth != 0 && operations[p.does] != Free {
			t.Errorf("%s %s: the stack pointer has moved by %d", p.build, p.name, choice.Depth)
		}
	}
}

// TestChooseHotFunctions holds what a disassembly of each library says about the two
// functions that matter most, read by eye.
func TestChooseHotFunctions(t *testing.T) {
	want := map[string]string{
		"debian-11-glibc malloc":      "+7 push r12 (emulated)",
		"debian-11-glibc free":        "+17 jnz .+0x81 (emulated)",
		"debian-12-glibc malloc":      "+0 push r12 (emulated)",
		"debian-12-glibc free":        "+9 push rbp (emulated)",
		"debian-13-glibc malloc":      "+0 push r12 (emulated)",
		"debian-13-glibc free":        "+9 push r15 (emulated)",
		"debian-sid-glibc malloc":     "+3 js .+0x71 (emulated)",
		"debian-sid-glibc free":       "+13 jnz .+0xcd (emulated)",
		"debian-11-musl malloc":       "+0 jmp .+0x198b (emulated)",
		"debian-13-musl malloc":       "+4 jmp .+0xbc7 (emulated)",
		"debian-12-jemalloc malloc":   "+7 jnbe .+0x93 (emulated)",
		"debian-12-jemalloc free":     "+48 jnz .+0x8a (emulated)",
		"debian-12-tcmalloc malloc":   "+10 jnz .+0x75 (emulated)",
		"debian-12-mimalloc malloc":   "+0 mov rax, qword ptr [rip+0xb449] (single-stepped)",
		"debian-12-mimalloc free":     "+6 jz .+0x5d (emulated)",
		"debian-sid-mimalloc malloc":  "+22 jnbe .+0x38 (emulated)",
		"debian-sid-jemalloc realloc": "+4 push r15 (emulated)",
	}
	seen := 0
	for _, p := range prologues(t) {
		expected, listed := want[p.build+" "+p.name]
		if !listed {
			continue
		}
		seen++
		if got := Choose(elf.EM_X86_64, p.code, operations[p.does]).String(); strings.ToLower(got) != expected {
			t.Errorf("%s %s: chose %s, want %s", p.build, p.name, got, expected)
		}
	}
	if seen < len(want) {
		t.Errorf("%d of %d functions are in the fixtures", seen, len(want))
	}
}

// TestChoosePrologues states the rules on code made for them.
func TestChoosePrologues(t *testing.T) {
	for _, test := range []struct {
		name string
		code string
		does Operation
		want Choice
	}{
		{"push first", "55 4889e5 c3", Malloc, Choice{Offset: 0, Cost: Emulated}},
		{"push of a high register", "4154 55 c3", Malloc, Choice{Offset: 0, Cost: Emulated}},
		{"behind endbr64", "f30f1efa 55 c3", Malloc, Choice{Offset: 4, Cost: Emulated}},
		{"the null check is skipped for a release", "4885ff 7401 55 c3", Free, Choice{Offset: 5, Cost: Emulated, SkipsNull: true}},
		{"but nowhere else", "4885ff 7401 55 c3", Realloc, Choice{Offset: 3, Cost: Emulated}},
		{"a check of another register is not skipped", "4885f6 7401 55 c3", Free, Choice{Offset: 3, Cost: Emulated}},
		{"an argument is overwritten", "4889f7 55 c3", Malloc, Choice{Offset: 0, Cost: Stepped}},
		{"half of an argument is overwritten", "31ff 55 c3", Malloc, Choice{Offset: 0, Cost: Stepped}},
		{"a register that holds no argument is", "31f6 55 c3", Malloc, Choice{Offset: 2, Cost: Emulated}},
		{"the second argument is", "31f6 55 c3", Calloc, Choice{Offset: 0, Cost: Stepped}},
		{"the product of calloc", "4889f8 48f7e6 7001 c3", Calloc, Choice{Offset: 6, Cost: Emulated}},
		{"the product takes a third argument", "4889f0 48f7e2 7001 c3", Reallocarray, Choice{Offset: 0, Cost: Stepped}},
		{"the stack pointer has moved", "4883ec18 7401 c3", Malloc, Choice{Offset: 0, Cost: Stepped}},
		{"a release may be probed below", "4883ec18 4885ff 7401 c3", Free, Choice{Offset: 7, Cost: Emulated, Depth: 24}},
		{"a jump leads back behind the entry", "4889f8 55 ebfd c3", Malloc, Choice{Offset: 0, Cost: Stepped}},
		{"a call may not come back", "4889f8 e800000000 55 c3", Malloc, Choice{Offset: 3, Cost: Emulated}},
		{"five-byte nop", "0f1f440000 c3", Malloc, Choice{Offset: 0, Cost: Optimized}},
		{"a push is cheaper everywhere", "0f1f440000 55 c3", Malloc, Choice{Offset: 5, Cost: Emulated}},
		{"a jump with a size prefix is refused by the kernel", "66e900000000", Malloc, Choice{Offset: 0, Cost: Stepped}},
		{"no code", "", Malloc, Choice{Cost: Stepped}},
		{"no instruction", "06", Malloc, Choice{Cost: Stepped}},
	} {
		code, err := hex.DecodeString(strings.ReplaceAll(test.code, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got := Choose(elf.EM_X86_64, code, test.does)
		got.Instruction = ""
		if got != test.want {
			t.Errorf("%s: chose %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestChooseARM64(t *testing.T) {
	for _, test := range []struct {
		name, code string
		cost       Cost
	}{
		{"stp x29, x30, [sp,#-32]!", "fd7bbea9", Stepped},
		{"cbz x0", "400000b4", Emulated},
		{"b", "01000014", Emulated},
		{"nop", "1f2003d5", Emulated},
		{"adrp x1", "01000090", Emulated},
		{"too short", "fd7b", Stepped},
	} {
		code, _ := hex.DecodeString(test.code)
		if got := Choose(elf.EM_AARCH64, code, Malloc); got.Offset != 0 || got.Cost != test.cost || !got.StackIntact() {
			t.Errorf("%s: chose %+v, want the entry, %s", test.name, got, test.cost)
		}
	}
}

func TestJumpsTo(t *testing.T) {
	for _, test := range []struct {
		machine elf.Machine
		code    string
		to      int64
		ok      bool
	}{
		{elf.EM_X86_64, "e9fb0f0000", 0x1000, true},
		{elf.EM_X86_64, "f30f1efae9f7ffffff", 0, true},
		{elf.EM_X86_64, "55e9fb0f0000", 0, false},
		{elf.EM_AARCH64, "00040014", 0x1000, true},
		{elf.EM_AARCH64, "5f2403d5ffffff17", 0, true},
		{elf.EM_AARCH64, "fd7bbea9", 0, false},
	} {
		code, _ := hex.DecodeString(test.code)
		if to, ok := JumpsTo(test.machine, code); ok != test.ok || ok && to != test.to {
			t.Errorf("%s: %#x %v, want %#x %v", test.code, to, ok, test.to, test.ok)
		}
	}
}

// FuzzChoose: no code makes the choice panic, nor lie outside the code, nor move the stack
// pointer where the return matters.
func FuzzChoose(f *testing.F) {
	for _, p := range prologues(f) {
		f.Add(p.code, uint8(operations[p.does]), false)
	}
	f.Add([]byte{0xfd, 0x7b, 0xbe, 0xa9}, uint8(Malloc), true)
	f.Fuzz(func(t *testing.T, code []byte, does uint8, arm bool) {
		machine := elf.EM_X86_64
		if arm {
			machine = elf.EM_AARCH64
		}
		choice := Choose(machine, code, Operation(does))
		if choice.Offset != 0 && choice.Offset >= uint64(len(code)) {
			t.Errorf("offset %d in %d bytes", choice.Offset, len(code))
		}
		if choice.Depth != 0 && Operation(does) != Free {
			t.Errorf("depth %d for %s", choice.Depth, Operation(does))
		}
		if choice.SkipsNull && Operation(does) != Free {
			t.Errorf("%s skips null", Operation(does))
		}
		JumpsTo(machine, code)
	})
}
