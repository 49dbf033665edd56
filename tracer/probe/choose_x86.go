package probe

import (
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

const (
	// x86Window is how far into a function a probe may lie: a prologue is shorter.
	x86Window = 64
	// x86Function bounds how much of a function is searched for jumps into its prologue.
	x86Function = 64 << 10
)

// x86Walk is a place in a prologue and what happened on the way there.
type x86Walk struct {
	code      []byte
	does      Operation
	at        int    // offset of the instruction
	depth     uint64 // how far the stack pointer has moved down
	skipsNull bool   // a call with a null first argument went another way
}

// chooseX86 walks the prologue until an instruction ends the part that every call passes,
// or changes an argument, and remembers the cheapest place before that.
func chooseX86(code []byte, does Operation) Choice {
	if len(code) > x86Function {
		code = code[:x86Function]
	}
	best := Choice{Cost: Stepped, Instruction: "?"}
	targets := x86Targets(code)
	for w := (x86Walk{code: code, does: does}); w.at < len(code) && w.at < x86Window; {
		if w.at > 0 && targets[w.at] {
			break
		}
		insn, err := x86Decode(code[w.at:])
		if err != nil {
			break
		}
		cost := x86Cost(code[w.at : w.at+insn.Len])
		// Behind the check for null a probe costs the same, and nothing for null.
		better := cost < best.Cost || cost == best.Cost && cost < Stepped && w.skipsNull && !best.SkipsNull && w.depth == best.Depth
		if w.at == 0 || better {
			best = Choice{Offset: uint64(w.at), Cost: cost, Depth: w.depth, SkipsNull: w.skipsNull, Instruction: x86Text(insn)}
		}
		if !w.follow(insn) {
			break
		}
	}
	return best
}

// follow goes to the next instruction that every call of interest passes. It returns false
// when that is not known, or the instruction spoils an argument or the stack pointer.
func (w *x86Walk) follow(insn x86asm.Inst) bool {
	at := w.at
	w.at += insn.Len
	switch insn.Op {
	case x86asm.JE:
		// A release of null is no release: what follows `test rdi,rdi; je` sees all others.
		w.skipsNull = w.skipsNull || w.does == Free && at >= 3 && x86TestsFirst(w.code[at-3:at])
		return w.skipsNull
	case x86asm.CMP, x86asm.TEST, x86asm.NOP:
		return true
	case x86asm.SUB:
		if size, ok := insn.Args[1].(x86asm.Imm); ok && insn.Args[0] == x86asm.RSP && w.does == Free && size > 0 && size < 1<<16 {
			w.depth += uint64(size)
			return true
		}
		return w.harmless(insn.Args[0])
	case x86asm.MUL:
		return w.keeps(x86asm.RDX)
	}
	return x86OneResult[insn.Op] && w.harmless(insn.Args[0])
}

// x86OneResult are the instructions of prologues that change nothing but their first operand
// and the flags.
var x86OneResult = map[x86asm.Op]bool{
	x86asm.MOV: true, x86asm.MOVZX: true, x86asm.MOVSX: true, x86asm.MOVSXD: true, x86asm.MOVD: true, x86asm.MOVQ: true,
	x86asm.LEA: true, x86asm.XOR: true, x86asm.AND: true, x86asm.OR: true, x86asm.ADD: true, x86asm.NOT: true, x86asm.NEG: true,
	x86asm.SHR: true, x86asm.SHL: true, x86asm.SAR: true, x86asm.ROR: true, x86asm.ROL: true, x86asm.BSR: true, x86asm.BSF: true,
	x86asm.SETE: true, x86asm.SETNE: true, x86asm.SETA: true, x86asm.SETB: true, x86asm.SETBE: true, x86asm.SETO: true,
	x86asm.INC: true, x86asm.DEC: true,
}

// x86TestsFirst recognises `test rdi,rdi`.
func x86TestsFirst(code []byte) bool {
	return code[0] == 0x48 && code[1] == 0x85 && code[2] == 0xff
}

// harmless tells whether writing to the operand leaves the arguments, the stack pointer and
// the stack's contents alone.
func (w *x86Walk) harmless(destination x86asm.Arg) bool {
	switch destination := destination.(type) {
	case x86asm.Reg:
		return w.keeps(destination)
	case x86asm.Mem:
		return destination.Base != x86asm.RSP
	}
	return false
}

// x86Arguments are the registers of the first arguments (System V calling convention).
var x86Arguments = [...]x86asm.Reg{x86asm.RDI, x86asm.RSI, x86asm.RDX, x86asm.RCX}

// keeps tells whether a register may change: it holds no argument and is not the stack pointer.
func (w *x86Walk) keeps(r x86asm.Reg) bool {
	whole := x86Whole(r)
	return whole != x86asm.RSP && !slices.Contains(x86Arguments[:w.does.Arguments()], whole)
}

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
func x86Cost(code []byte) Cost {
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

// x86JumpsTo recognises a function that is only a direct jump, after endbr64 if that is there.
func x86JumpsTo(code []byte) (to int64, ok bool) {
	at := 0
	if isEndbr(code) {
		at = 4
	}
	insn, err := x86Decode(code[at:])
	if err != nil || insn.Op != x86asm.JMP {
		return 0, false
	}
	rel, ok := insn.Args[0].(x86asm.Rel)
	return int64(at+insn.Len) + int64(rel), ok
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
