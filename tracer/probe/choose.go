package probe

import (
	"debug/elf"
	"fmt"
)

// Cost is what the kernel has to do with the instruction under a probe, cheapest first.
type Cost uint8

const (
	// Optimized: a five-byte nop that the kernel replaces by a call (Linux 6.18, x86-64).
	Optimized Cost = 1 + iota
	// Emulated: one trap, the instruction is carried out by the kernel.
	Emulated
	// Stepped: a second trap, because the instruction runs out of line under single-step.
	// In a virtual machine that costs about fifteen times as much as Emulated.
	Stepped
)

// String returns the class as doctor prints it.
func (c Cost) String() string {
	switch c {
	case Optimized:
		return "optimized"
	case Emulated:
		return "emulated"
	case Stepped:
		return "single-stepped"
	}
	return "unknown"
}

// Choice is where in a function the probe goes.
type Choice struct {
	// Offset is the distance in bytes from the function's first instruction.
	Offset uint64
	Cost   Cost
	// Depth is how many bytes the stack pointer lies below its value at the function's
	// entry; the return address stands at stack pointer + Depth (x86-64). A return or
	// session probe needs 0.
	Depth uint64
	// SkipsNull is true when a call with a null first argument does not pass the probe.
	SkipsNull bool
	// Instruction is the one under the probe, for people.
	Instruction string
}

// StackIntact tells whether the stack pointer is as at the function's entry.
func (c Choice) StackIntact() bool { return c.Depth == 0 }

// String renders the choice as doctor prints it, such as "+9 push rbp (emulated)".
func (c Choice) String() string {
	return fmt.Sprintf("+%d %s (%s)", c.Offset, c.Instruction, c.Cost)
}

// Choose picks the cheapest instruction near the start of a function that every call of
// interest passes exactly once while its arguments still stand in their registers and the
// stack pointer is as at entry. code begins at the entry and should hold the whole function:
// a jump back into the prologue would let one call pass the probe twice. Where there is no
// cheaper place, or the code cannot be read, the choice is the entry itself.
func Choose(machine elf.Machine, code []byte, does Operation) Choice {
	switch machine {
	case elf.EM_X86_64:
		return chooseX86(code, does)
	case elf.EM_AARCH64:
		return chooseARM64(code)
	}
	return Choice{Cost: Stepped, Instruction: "?"}
}
