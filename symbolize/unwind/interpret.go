package unwind

import (
	"encoding/binary"
)

// kind is how a register's value in the caller is found.
type kind uint8

const (
	unchanged  kind = iota // the caller's value is still in the register
	undefined              // it is lost
	saved                  // it is in memory at the CFA plus offset
	register               // for the CFA: a register plus offset
	expression             // in memory at a DWARF expression's value; the CFA: that value itself
	other                  // in a way that the tables do not know
)

// place is where a value is found.
type place struct {
	kind       kind
	register   uint64
	offset     int64
	expression []byte
}

// slot returns how far below the CFA the value is saved, 0 if it is not; false when it is
// found in another way.
func (p place) slot() (int64, bool) {
	switch p.kind {
	case unchanged, undefined:
		return 0, true
	case saved:
		return -p.offset, p.offset < 0
	}
	return 0, false
}

// state is where the three values that the walk needs are found.
type state struct {
	cfa, fp, returns place
}

// Call frame instructions (DWARF 5 section 6.4.2, and the extensions of the Linux Standard
// Base and the Arm ABI). The first three have an operand in their low six bits.
const (
	cfaAdvance = 0x40
	cfaOffset  = 0x80
	cfaRestore = 0xc0
	cfaOperand = 0x3f

	cfaNop                   = 0x00
	cfaSetLoc                = 0x01
	cfaAdvance1              = 0x02
	cfaAdvance2              = 0x03
	cfaAdvance4              = 0x04
	cfaOffsetExtended        = 0x05
	cfaRestoreExtended       = 0x06
	cfaUndefined             = 0x07
	cfaSameValue             = 0x08
	cfaRegister              = 0x09
	cfaRememberState         = 0x0a
	cfaRestoreState          = 0x0b
	cfaDefCFA                = 0x0c
	cfaDefCFARegister        = 0x0d
	cfaDefCFAOffset          = 0x0e
	cfaDefCFAExpression      = 0x0f
	cfaExpression            = 0x10
	cfaOffsetExtendedSF      = 0x11
	cfaDefCFASF              = 0x12
	cfaDefCFAOffsetSF        = 0x13
	cfaValOffset             = 0x14
	cfaValOffsetSF           = 0x15
	cfaValExpression         = 0x16
	cfaNegateReturnStatePC   = 0x2c
	cfaNegateReturnState     = 0x2d
	cfaArgumentsSize         = 0x2e
	cfaNegativeOffsetExtends = 0x2f
)

// rememberedStates bounds how deep a function may nest its states; compilers use two.
const rememberedStates = 32

// interpreter executes call frame instructions.
type interpreter struct {
	common     *cie
	machine    machine
	order      binary.ByteOrder
	state      state
	pc         uint64
	remembered []state
}

// execute runs the instructions of a function that begins at start. emit is told, before
// the address advances, where the state so far begins. False = an instruction is unknown or
// malformed: the state at that address and behind it is not to be trusted.
func (i *interpreter) execute(code []byte, start uint64, emit func(from uint64)) bool {
	i.pc = start
	r := reader{data: code, order: i.order}
	for r.rest() > 0 {
		op := r.u8()
		if delta, advances := i.advance(&r, op); advances {
			if r.failed || emit == nil {
				return false
			}
			emit(i.pc)
			i.pc += delta
			continue
		}
		if !i.instruction(&r, op) || r.failed {
			return false
		}
	}
	return true
}

// advance decodes the instructions that move to a later address.
func (i *interpreter) advance(r *reader, op uint8) (delta uint64, advances bool) {
	switch {
	case op&^cfaOperand == cfaAdvance:
		delta = uint64(op & cfaOperand)
	case op == cfaAdvance1:
		delta = uint64(r.u8())
	case op == cfaAdvance2:
		delta = uint64(r.u16())
	case op == cfaAdvance4:
		delta = uint64(r.u32())
	default:
		return 0, false
	}
	return delta * i.common.codeAlign, true
}

// instruction executes one instruction that changes the state.
func (i *interpreter) instruction(r *reader, op uint8) bool {
	switch op &^ cfaOperand {
	case cfaOffset:
		i.set(uint64(op&cfaOperand), place{kind: saved, offset: int64(r.uleb()) * i.common.dataAlign})
		return true
	case cfaRestore:
		i.restore(uint64(op & cfaOperand))
		return true
	}
	switch op {
	case cfaNop, cfaNegateReturnState, cfaNegateReturnStatePC:
	case cfaArgumentsSize:
		r.uleb()
	case cfaRememberState:
		if len(i.remembered) == rememberedStates {
			return false
		}
		i.remembered = append(i.remembered, i.state)
	case cfaRestoreState:
		last := len(i.remembered) - 1
		if last < 0 {
			return false
		}
		i.state, i.remembered = i.remembered[last], i.remembered[:last]
	case cfaDefCFA, cfaDefCFASF, cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFAOffsetSF, cfaDefCFAExpression:
		return i.defineCFA(r, op)
	default:
		return i.rule(r, op)
	}
	return true
}

// defineCFA executes the instructions that change the CFA.
func (i *interpreter) defineCFA(r *reader, op uint8) bool {
	cfa := &i.state.cfa
	switch op {
	case cfaDefCFA:
		*cfa = place{kind: register, register: r.uleb(), offset: int64(r.uleb())}
	case cfaDefCFASF:
		*cfa = place{kind: register, register: r.uleb(), offset: r.sleb() * i.common.dataAlign}
	case cfaDefCFAExpression:
		*cfa = place{kind: expression, expression: r.take(r.uleb())}
	case cfaDefCFARegister:
		cfa.register = r.uleb()
		return cfa.kind == register
	case cfaDefCFAOffset:
		cfa.offset = int64(r.uleb())
		return cfa.kind == register
	case cfaDefCFAOffsetSF:
		cfa.offset = r.sleb() * i.common.dataAlign
		return cfa.kind == register
	}
	return true
}

// rule executes the instructions that say where one register is.
func (i *interpreter) rule(r *reader, op uint8) bool {
	if op < cfaOffsetExtended || op > cfaValExpression && op != cfaNegativeOffsetExtends {
		return false
	}
	column := r.uleb()
	switch op {
	case cfaOffsetExtended:
		i.set(column, place{kind: saved, offset: int64(r.uleb()) * i.common.dataAlign})
	case cfaOffsetExtendedSF:
		i.set(column, place{kind: saved, offset: r.sleb() * i.common.dataAlign})
	case cfaNegativeOffsetExtends:
		i.set(column, place{kind: saved, offset: -int64(r.uleb()) * i.common.dataAlign})
	case cfaRestoreExtended:
		i.restore(column)
	case cfaUndefined:
		i.set(column, place{kind: undefined})
	case cfaSameValue:
		i.set(column, place{})
	case cfaRegister:
		r.uleb()
		i.set(column, place{kind: other})
	case cfaExpression:
		i.set(column, place{kind: expression, expression: r.take(r.uleb())})
	case cfaValOffset, cfaValOffsetSF:
		r.uleb()
		i.set(column, place{kind: other})
	case cfaValExpression:
		r.take(r.uleb())
		i.set(column, place{kind: other})
	default:
		return false
	}
	return true
}

// set notes where a register is, if it is one that the walk needs.
func (i *interpreter) set(column uint64, p place) {
	switch column {
	case i.machine.fp:
		i.state.fp = p
	case i.machine.returns:
		i.state.returns = p
	}
}

// restore puts a register back to where the common entry has it.
func (i *interpreter) restore(column uint64) {
	switch column {
	case i.machine.fp:
		i.state.fp = i.common.initial.fp
	case i.machine.returns:
		i.state.returns = i.common.initial.returns
	}
}
