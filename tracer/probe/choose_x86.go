package probe

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

const (
	// x86Window is how far into a function a probe may lie: a prologue is shorter.
	x86Window = 64
	// x86Function bounds how much of a function is searched for jumps into its prologue.
	x86Function = 64 << 10
)

// chooseX86 walks the prologue until an instruction ends the part that every call passes,
// or changes an argument, and remembers the cheapest place before that.
func chooseX86(code []byte, does Operation) Choice {
	if len(code) > x86Function {
		code = code[:x86Function]
	}
	best := Choice{Cost: Stepped, Instruction: "?"}
	targets := x86Targets(code)
	skipsNull := false
	for at := 0; at < len(code) && at < x86Window; {
		if at > 0 && targets[at] {
			break
		}
		insn, err := x86Decode(code[at:])
		if err != nil {
			break
		}
		cost := x86Cost(code[at:at+insn.Len], insn)
		// Behind the check for null a probe costs the same, and nothing for null.
		if at == 0 || cost < best.Cost || cost == best.Cost && skipsNull && !best.SkipsNull {
			best = Choice{Offset: uint64(at), Cost: cost, SkipsNull: skipsNull, Instruction: x86Text(insn)}
		}
		next, through := x86Follow(code, at, insn, does)
		if !through {
			break
		}
		skipsNull = skipsNull || next.skipsNull
		at = next.at
	}
	return best
}

// x86Next is where the walk goes on.
type x86Next struct {
	at        int
	skipsNull bool
}

// x86Follow tells where every call of interest goes after the instruction; false when that
// is not known, or the instruction spoils an argument or the stack pointer.
func x86Follow(code []byte, at int, insn x86asm.Inst, does Operation) (x86Next, bool) {
	next := x86Next{at: at + insn.Len}
	switch insn.Op {
	case x86asm.JE:
		// A release of null is no release: what follows `test rdi,rdi; je` sees all others.
		if does == Free && at >= 3 && x86TestsFirst(code[at-3:at]) {
			next.skipsNull = true
			return next, true
		}
		return next, false
	case x86asm.CMP, x86asm.TEST, x86asm.NOP:
		return next, true
	case x86asm.MOV, x86asm.LEA, x86asm.XOR, x86asm.MOVZX, x86asm.ADD, x86asm.SHR, x86asm.AND, x86asm.OR,
		x86asm.MOVSXD, x86asm.MOVD, x86asm.MOVQ, x86asm.SETE, x86asm.SETNE, x86asm.SETA, x86asm.SETB, x86asm.SETBE:
		return next, x86Harmless(insn)
	}
	return next, isEndbr(code[at:])
}

// x86TestsFirst recognises `test rdi,rdi`.
func x86TestsFirst(code []byte) bool {
	return code[0] == 0x48 && code[1] == 0x85 && code[2] == 0xff
}

// x86Harmless tells whether an instruction with a destination leaves the argument
// registers, the stack pointer and the stack's contents alone.
func x86Harmless(insn x86asm.Inst) bool {
	switch destination := insn.Args[0].(type) {
	case x86asm.Reg:
		return !x86Argument[x86Whole(destination)]
	case x86asm.Mem:
		return destination.Base != x86asm.RSP
	}
	return false
}

// x86Argument holds the registers of the first four arguments of the System V calling
// convention (no entry has more), and the stack pointer.
var x86Argument = map[x86asm.Reg]bool{x86asm.RDI: true, x86asm.RSI: true, x86asm.RDX: true, x86asm.RCX: true, x86asm.RSP: true}

// x86Whole returns the 64-bit register that a register is part of.
func x86Whole(r x86asm.Reg) x86asm.Reg {
	switch {
	case r >= x86asm.AL && r <= x86asm.BL: // AL CL DL BL
		return x86asm.RAX + r - x86asm.AL
	case r >= x86asm.AH && r <= x86asm.BH: // AH CH DH BH
		return x86asm.RAX + r - x86asm.AH
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return x86asm.RSP + r - x86asm.SPB
	case r >= x86asm.AX && r <= x86asm.R15W:
		return x86asm.RAX + r - x86asm.AX
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return x86asm.RAX + r - x86asm.EAX
	}
	return r
}

// x86Cost classes an instruction as arch/x86/kernel/uprobes.c does: pushes of a register,
// nops and direct branches are emulated. Branches with an operand-size prefix are refused
// there, so they must never be chosen.
func x86Cost(code []byte, insn x86asm.Inst) Cost {
	if strings.HasPrefix(string(code), "\x0f\x1f\x44\x00\x00") {
		return Optimized
	}
	switch first := code[0]; {
	case len(code) == 1 && first >= 0x50 && first <= 0x57: // push r64
		return Emulated
	case len(code) == 2 && first == 0x41 && code[1] >= 0x50 && code[1] <= 0x57: // push r8…r15
		return Emulated
	case first == 0x90, first == 0xeb, first == 0xe9, first == 0xe8, first >= 0x70 && first <= 0x7f:
		return Emulated
	case first == 0x0f && len(code) == 6 && code[1] >= 0x80 && code[1] <= 0x8f: // jcc rel32
		return Emulated
	}
	return Stepped
}

// isEndbr recognises endbr64, which indirect branches land on. The kernel steps it.
func isEndbr(code []byte) bool { return strings.HasPrefix(string(code), "\xf3\x0f\x1e\xfa") }

// x86Decode reads one instruction; endbr64 is a nop that the decoder does not know.
func x86Decode(code []byte) (x86asm.Inst, error) {
	if isEndbr(code) {
		return x86asm.Inst{Op: x86asm.NOP, Len: 4}, nil
	}
	return x86asm.Decode(code, 64)
}

func x86Text(insn x86asm.Inst) string {
	if insn.Op == x86asm.NOP && insn.Opcode == 0 {
		return "endbr64"
	}
	return x86asm.IntelSyntax(insn, 0, nil)
}

// x86Targets returns the offsets that direct jumps inside the function lead to. The walk is
// linear; after bytes that are no instruction it goes on at the next one, which can only
// add offsets that are not really jumped to.
func x86Targets(code []byte) map[int]bool {
	targets := map[int]bool{}
	for at := 0; at < len(code); {
		insn, err := x86Decode(code[at:])
		if err != nil || insn.Len == 0 {
			at++
			continue
		}
		at += insn.Len
		if insn.Op == x86asm.CALL {
			continue
		}
		if rel, ok := insn.Args[0].(x86asm.Rel); ok {
			if to := at + int(rel); to >= 0 && to < len(code) {
				targets[to] = true
			}
		}
	}
	return targets
}
