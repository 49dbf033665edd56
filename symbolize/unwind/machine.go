package unwind

import "debug/elf"

// machine is what differs between processors. Register numbers are DWARF's.
type machine struct {
	elf     elf.Machine
	sp, fp  uint64
	returns uint64 // the column of the return address
	reduce  func(*interpreter) (Row, bool)
}

// machines lists the processors whose tables can be made: numbers from the x86-64 psABI
// (figure 3.36) and the DWARF document of the Arm ABI (table 3).
var machines = []machine{
	{elf: elf.EM_X86_64, sp: 7, fp: 6, returns: 16, reduce: reduceX86},
	{elf: elf.EM_AARCH64, sp: 31, fp: 29, returns: 30, reduce: reduceARM},
}

// DWARF expression operations that compilers and linkers use in call frame information.
const (
	opDeref = 0x06
	opAnd   = 0x1a
	opPlus  = 0x22
	opShl   = 0x24
	opGE    = 0x2a
	opLit0  = 0x30
	opBReg0 = 0x70
)

// reduceX86 packs the state of an x86-64 function.
func reduceX86(run *interpreter) (Row, bool) {
	s := &run.state
	if s.returns.kind == undefined {
		return makeRow(End, 0, 0, 0)
	}
	if s.cfa.kind == expression {
		return reduceX86Expression(run)
	}
	if s.returns.kind != saved || s.returns.offset != -word {
		return 0, false
	}
	rule, ok := baseRule(run, SP, FP)
	slot, kept := s.fp.slot()
	// Each step must get up the stack, or a walk could run in circles.
	if !ok || !kept || s.cfa.offset < word {
		return 0, false
	}
	return makeRow(rule, s.cfa.offset, slot, 0)
}

// reduceX86Expression knows the three expressions that stand for a CFA in practice.
func reduceX86Expression(run *interpreter) (Row, bool) {
	s := &run.state
	cfa := s.cfa.expression
	r := reader{data: cfa, order: run.order}
	switch first := r.u8(); first {
	case opBReg0 + 7:
		offset := r.sleb()
		if r.rest() == 1 && r.u8() == opDeref {
			return makeRow(Signal, 0, 0, 0)
		}
		return reducePLT(&r, offset, s)
	case opBReg0 + 6:
		// rbp is saved where it points to, and the CFA in a word below.
		offset := r.sleb()
		caller := reader{data: s.fp.expression, order: run.order}
		direct := s.fp.kind == expression && caller.u8() == opBReg0+6 && caller.sleb() == 0 && caller.rest() == 0
		if r.rest() != 1 || r.u8() != opDeref || offset >= 0 || !direct || caller.failed {
			return 0, false
		}
		return makeRow(FPIndirect, 0, -offset, 0)
	}
	return 0, false
}

// reducePLT recognises rsp + 8 + ((rip & 15) >= n) * 8, which linkers write for the stubs of
// the procedure linkage table; the reader is behind the first term.
func reducePLT(r *reader, offset int64, s *state) (Row, bool) {
	pc, zero, mask, and, limit := r.u8(), r.sleb(), r.u8(), r.u8(), r.u8()
	tail := r.take(4)
	if r.failed || r.rest() != 0 || offset != word || pc != opBReg0+16 || zero != 0 || mask != opLit0+15 || and != opAnd {
		return 0, false
	}
	if [4]byte(tail) != [4]byte{opGE, opLit0 + 3, opShl, opPlus} || limit < opLit0 || limit > opLit0+15 {
		return 0, false
	}
	if _, kept := s.fp.slot(); !kept {
		return 0, false
	}
	return makeRow(PLT, int64(limit-opLit0)*word, 0, 0)
}

// reduceARM packs the state of an arm64 function.
func reduceARM(run *interpreter) (Row, bool) {
	s := &run.state
	if s.returns.kind == undefined {
		return makeRow(End, 0, 0, 0)
	}
	fp, kept := s.fp.slot()
	returns, known := s.returns.slot()
	if !kept || !known || s.cfa.kind != register {
		return 0, false
	}
	switch {
	case returns == 0:
		rule, ok := baseRule(run, SPLink, FPLink)
		row, fits := makeRow(rule, s.cfa.offset, fp, 0)
		return row, ok && fits
	case fp == 0:
		rule, ok := baseRule(run, SPReturn, FPReturn)
		row, fits := makeRow(rule, s.cfa.offset, returns, 0)
		return row, ok && fits
	}
	rule, ok := baseRule(run, SP, FP)
	row, fits := makeRow(rule, s.cfa.offset, fp, fp-returns)
	return row, ok && fits
}

// baseRule chooses between the rules for a CFA on the stack pointer and the frame pointer.
func baseRule(run *interpreter, sp, fp Rule) (Rule, bool) {
	switch run.state.cfa.register {
	case run.machine.sp:
		return sp, true
	case run.machine.fp:
		return fp, true
	}
	return None, false
}
