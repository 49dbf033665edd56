package unwind

// Row is what the walk does from an address on: 64 bits, laid out as bpf/unwind.h says.
//
//	bits  0…15  offset in the bucket, bytes
//	bits 16…19  rule
//	bits 20…23  return address's slot relative to the frame pointer's, words, signed
//	bits 24…43  distance of the CFA from its base, words
//	bits 44…63  distance of the slot below the CFA, words; 0 = not saved
//
// The CFA (canonical frame address, DWARF 5 section 6.4) is the stack pointer's value in the
// caller, just before the call on arm64, and with the return address popped on x86-64.
type Row uint64

// Rule is the part of a row that says how to step.
type Rule uint8

// The rules; enum unwind_rule of bpf/unwind.h has the same numbers.
const (
	// None: nothing is known of this code.
	None Rule = iota
	// SP and FP: the CFA is the stack or frame pointer plus the distance. x86-64 has the
	// return address at the CFA - 8, arm64 next to the frame pointer's slot.
	SP
	FP
	// SPLink and FPLink: likewise, and the return address is still in x30 (arm64).
	SPLink
	FPLink
	// SPReturn and FPReturn: likewise, and the slot holds the return address; the frame
	// pointer is the caller's (arm64).
	SPReturn
	FPReturn
	// FPIndirect: the CFA is the word at the frame pointer minus the slot's distance, and
	// the word at the frame pointer is the caller's one (x86-64, realigned stacks).
	FPIndirect
	// PLT: the CFA is the stack pointer plus 8, or plus 16 from the offset in the stub on
	// that the distance tells, in bytes (x86-64).
	PLT
	// Signal: the kernel's frame of a signal handler; registers come from its ucontext.
	Signal
	// End: the first function of a thread.
	End
)

// The widths of the fields, in bits.
const (
	offsetBits   = 16
	ruleBits     = 4
	returnBits   = 4
	distanceBits = 20

	ruleShift     = offsetBits
	returnShift   = ruleShift + ruleBits
	distanceShift = returnShift + returnBits
	slotShift     = distanceShift + distanceBits

	offsetMask   = 1<<offsetBits - 1
	distanceMask = 1<<distanceBits - 1
)

// word is the size of an address on the stack, bytes.
const word = 8

// Rule returns how to step.
func (r Row) Rule() Rule { return Rule(r >> ruleShift & (1<<ruleBits - 1)) }

// Distance returns the CFA's distance from its base, bytes.
func (r Row) Distance() uint64 { return uint64(r>>distanceShift&distanceMask) * word }

// Slot returns how far below the CFA the slot is, bytes; 0 = nothing is saved.
func (r Row) Slot() uint64 { return uint64(r>>slotShift) * word }

// Return returns where the return address is relative to the slot, bytes (arm64).
func (r Row) Return() int64 {
	return int64(r<<(64-distanceShift)) >> (64 - returnBits) * word
}

// offset returns where in its bucket the row begins.
func (r Row) offset() int { return int(r & offsetMask) }

// at returns the row for another place in a bucket.
func (r Row) at(offset int) Row { return r&^offsetMask | Row(offset) }

// makeRow packs a row; lengths are in bytes. What does not fit, or is no whole number of
// words, cannot be told to the kernel half.
func makeRow(rule Rule, distance, slot, returns int64) (Row, bool) {
	if distance < 0 || slot < 0 || distance%word != 0 || slot%word != 0 || returns%word != 0 {
		return 0, false
	}
	distance, slot, returns = distance/word, slot/word, returns/word
	const most = 1 << (returnBits - 1)
	if distance > distanceMask || slot > distanceMask || returns < -most || returns >= most {
		return 0, false
	}
	return Row(rule)<<ruleShift | Row(returns&(1<<returnBits-1))<<returnShift |
		Row(distance)<<distanceShift | Row(slot)<<slotShift, true
}
