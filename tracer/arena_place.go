package tracer

import (
	"golang.org/x/arch/x86/x86asm"

	"memtrace/tracer/heap"
	"memtrace/tracer/target"
)

// arena_get2 gives a thread its arena. It is static, and distributions strip its name. It is
// found by what it does: malloc calls it with no arena to avoid, and it is the only function
// that malloc calls which looks at mp_.arena_max.

// findArenaGet returns the address of arena_get2 in the process, 0 when it is not found.
func findArenaGet(pid int, allocator *target.Allocator, arenaMax uint64) uint64 {
	malloc, found := allocator.Find("malloc")
	if !found || malloc.Address == 0 || malloc.Size == 0 {
		return 0
	}
	const most = 4 << 10
	code, err := heap.ReadCode(pid, malloc.Address, int(min(malloc.Size, most)))
	if err != nil {
		return 0
	}
	for _, callee := range calledWithoutSecond(code, malloc.Address) {
		if near(malloc.Address, callee) && readsWord(pid, callee, arenaMax) {
			return callee
		}
	}
	return 0
}

// near tells whether two functions can be of one source file: glibc links the static functions
// of malloc.c before the exported ones.
func near(a, b uint64) bool {
	const file = 64 << 10
	return max(a, b)-min(a, b) < file
}

// calledWithoutSecond lists the functions that x86 code calls with a second argument of 0.
func calledWithoutSecond(code []byte, address uint64) []uint64 {
	var callees []uint64
	zeroed := false
	for at := 0; at < len(code); {
		insn, length := decodeX86(code[at:])
		switch {
		case insn.Op == x86asm.XOR && insn.Args[0] == x86asm.ESI && insn.Args[1] == x86asm.ESI:
			zeroed = true
		case insn.Op == x86asm.CALL:
			if relative, ok := insn.Args[0].(x86asm.Rel); ok && zeroed {
				callees = append(callees, address+uint64(at+length)+uint64(int64(relative)))
			}
			zeroed = false
		case insn.Op != x86asm.MOV:
			zeroed = false
		}
		at += length
	}
	return callees
}

// readsWord tells whether the function at an address loads from a place in memory.
func readsWord(pid int, function, place uint64) bool {
	const looked = 1 << 10 // arena_get2 comes to the limit within 256 bytes
	code, err := heap.ReadCode(pid, function, looked)
	if err != nil {
		return false
	}
	for at := 0; at < len(code); {
		insn, length := decodeX86(code[at:])
		for i, argument := range insn.Args {
			memory, ok := argument.(x86asm.Mem)
			reads := i > 0 || insn.Op == x86asm.CMP
			if ok && reads && memory.Base == x86asm.RIP && function+uint64(at+length)+uint64(memory.Disp) == place {
				return true
			}
		}
		at += length
	}
	return false
}

// decodeX86 decodes one instruction; what cannot be decoded is skipped byte by byte.
func decodeX86(code []byte) (x86asm.Inst, int) {
	const mode = 64
	insn, err := x86asm.Decode(code, mode)
	if err != nil || insn.Len == 0 {
		return x86asm.Inst{}, 1
	}
	return insn, insn.Len
}
