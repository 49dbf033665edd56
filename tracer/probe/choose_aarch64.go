package probe

import (
	"encoding/binary"

	"golang.org/x/arch/arm64/arm64asm"
)

// chooseARM64 returns the entry. The kernel (arch/arm64/kernel/probes/decode-insn.c) steps
// most instructions out of line and simulates branches and hints such as bti, nop and paciasp;
// without trap-and-exit on a hypervisor the difference is small, and the entry is the one
// place where the return address is certain to be in the link register.
func chooseARM64(code []byte) Choice {
	choice := Choice{Cost: Stepped, Instruction: "?"}
	if len(code) < 4 {
		return choice
	}
	if insn, err := arm64asm.Decode(code); err == nil {
		choice.Instruction = insn.String()
	}
	if arm64Simulated(binary.LittleEndian.Uint32(code)) {
		choice.Cost = Emulated
	}
	return choice
}

// arm64Simulated tells whether the kernel carries the instruction out itself: direct
// branches, compare-and-branch, address computation, literal loads, and nop.
func arm64Simulated(word uint32) bool {
	switch {
	case word&0x1f000000 == 0x10000000, // adr, adrp
		word&0x7c000000 == 0x14000000, // b, bl
		word&0xff000010 == 0x54000000, // b.cond
		word&0x7e000000 == 0x34000000, // cbz, cbnz
		word&0x7e000000 == 0x36000000, // tbz, tbnz
		word&0xbf000000 == 0x18000000, // ldr (literal)
		word&0xff000000 == 0x98000000, // ldrsw (literal)
		word == 0xd503201f:            // nop
		return true
	}
	return false
}

// arm64JumpsTo recognises a function that is only a branch, after a landing pad (bti) if that
// is there.
func arm64JumpsTo(code []byte) (to int64, ok bool) {
	const instruction, landing, landingMask = 4, 0xd503241f, 0xffffff3f
	at := 0
	if len(code) >= 2*instruction && binary.LittleEndian.Uint32(code)&landingMask == landing {
		at = instruction
	}
	if len(code) < at+instruction {
		return 0, false
	}
	word := binary.LittleEndian.Uint32(code[at:])
	if word&0xfc000000 != 0x14000000 {
		return 0, false
	}
	words := int32(word<<6) >> 6
	return int64(at) + int64(words)*instruction, true
}
