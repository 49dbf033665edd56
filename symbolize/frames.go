package symbolize

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"maps"
	"slices"

	"memtrace/tracer/recording"
)

// Why a frame has no name, as recording.Frame.Unresolved says it.
const (
	Stripped  = "stripped"   // the module is known, but not what lies at the address
	JIT       = "jit"        // code without a file, and no perf map names it
	Unmapped  = "unmapped"   // nothing was ever seen to be mapped at the address
	StackLost = "stack lost" // there is no address
)

// Stack is a list of addresses to name.
type Stack struct {
	Addresses []uint64 // leaf first
	Snapshot  int      // Symbolizer.Snapshot when the stack was first seen; 0 is the newest
	Returning bool     // Addresses[0] is a return address too: its callee has been left out
}

// Frames names a stack, leaf first, whose first address is that of an instruction and whose
// others are return addresses. An address becomes several frames where functions are inlined.
func (s *Symbolizer) Frames(addresses []uint64) []recording.Frame {
	return s.StackFrames(Stack{Addresses: addresses})
}

// StackFrames names a stack, leaf first.
func (s *Symbolizer) StackFrames(stack Stack) []recording.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(stack.Addresses) == 0 {
		return []recording.Frame{{Unresolved: StackLost}}
	}
	s.asked, s.missed = false, false
	frames := make([]recording.Frame, 0, len(stack.Addresses))
	exact := !stack.Returning
	for _, address := range stack.Addresses {
		at := s.at(address, stack.Snapshot, exact)
		frames = append(frames, at.frames...)
		exact = at.signal // what a signal interrupted did not call anything
	}
	if s.missed {
		s.modules.shrink()
	}
	return frames
}

// Prepare names the addresses of many stacks in the order that is cheapest, by address: large
// units of debug information are then decoded once each, not in turns. StackFrames answers
// from memory afterwards. It gives up, with what it has, when the context ends.
func (s *Symbolizer) Prepare(ctx context.Context, stacks []Stack) {
	type lookup struct {
		address  uint64
		snapshot int
		exact    bool
	}
	wanted := map[lookup]bool{}
	for _, stack := range stacks {
		for i, address := range stack.Addresses {
			if len(wanted) < maxCached {
				wanted[lookup{address, stack.Snapshot, i == 0 && !stack.Returning}] = true
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(wanted), func(a, b lookup) int { return cmp.Compare(a.address, b.address) })
	for len(order) > 0 && ctx.Err() == nil {
		const batch = 64
		s.mu.Lock()
		s.asked = false
		for _, l := range order[:min(batch, len(order))] {
			s.at(l.address, l.snapshot, l.exact)
		}
		s.modules.shrink()
		s.mu.Unlock()
		order = order[min(batch, len(order)):]
	}
}

// at names one address, from memory if it can.
func (s *Symbolizer) at(address uint64, snapshot int, exact bool) resolved {
	r := s.history.find(address, snapshot)
	if r == nil && !exact && address > 0 {
		r = s.history.find(address-1, snapshot) // a call was the mapping's last instruction
	}
	if r == nil {
		return resolved{frames: []recording.Frame{{Address: recording.Address(address), Unresolved: Unmapped}}}
	}
	key := place{r, address, exact}
	if known, ok := s.cache[key]; ok {
		return known
	}
	s.missed = true
	result := s.resolve(r, address, exact)
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	if len(result.frames) > 0 && result.frames[0].Unresolved != JIT { // its map may still grow
		s.cache[key] = result
	}
	return result
}

// resolve names an address of a region.
func (s *Symbolizer) resolve(r *region, address uint64, exact bool) resolved {
	frame := recording.Frame{Address: recording.Address(address), Module: r.Path, Offset: address - r.Start + r.Offset}
	file := s.modules.fileOf(r)
	if file == nil {
		return resolved{frames: []recording.Frame{s.resolveJIT(r, frame, address, exact)}}
	}
	frame.BuildID = file.BuildID()
	offset, loaded := file.Address(frame.Offset)
	if !loaded {
		frame.Unresolved = Stripped
		return resolved{frames: []recording.Frame{frame}}
	}
	frame.Offset = offset
	signal := file.deliversSignal(offset)
	lookup := offset
	if !exact && !signal && lookup > 0 {
		lookup--
	}
	return resolved{frames: file.frames(frame, lookup, signal), signal: signal}
}

// resolveJIT names code that no ELF file holds.
func (s *Symbolizer) resolveJIT(r *region, frame recording.Frame, address uint64, exact bool) recording.Frame {
	if r.Path == "[vdso]" || r.Path == "[vsyscall]" || (r.module != nil && r.module.closed) {
		frame.Unresolved = Stripped
		return frame
	}
	s.openJIT()
	if !exact && address > 0 {
		address--
	}
	if name, ok := s.jit.lookup(address); ok {
		frame.Function = name
	} else {
		frame.Unresolved = JIT
	}
	return frame
}

// frames names a virtual address of the file: one frame, and one more for each function
// inlined there. base is the frame without its name.
func (f *File) frames(base recording.Frame, address uint64, signal bool) []recording.Frame {
	symbol, named := f.FunctionAt(address)
	function := Demangle(symbol.Name)
	if !named && signal {
		function = signalReturn(f.elf.Machine)
	}
	positions := f.positions(address)
	if len(positions) == 0 {
		positions = []position{{}}
	}
	if last := positions[len(positions)-1]; last.inlined {
		positions = append(positions, position{})
	}
	frames := make([]recording.Frame, len(positions))
	for i, p := range positions {
		frame := base
		frame.Function, frame.File, frame.Line, frame.Inlined = p.function, p.file, p.line, p.inlined
		if i == len(positions)-1 && function != "" {
			frame.Function = function
		}
		if frame.Function == "" {
			frame.Unresolved = Stripped
		}
		frames[i] = frame
	}
	return frames
}

// deliversSignal says whether the code at a virtual address is the system call that returns
// from a signal handler: the frame below it was interrupted, it did not call.
func (f *File) deliversSignal(address uint64) bool {
	var want []byte
	switch f.elf.Machine {
	case elf.EM_X86_64: // mov $15,%rax; syscall
		want = []byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}
	case elf.EM_AARCH64: // mov x8,#139; svc #0
		want = []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}
	default:
		return false
	}
	offset, ok := f.Offset(address)
	if !ok {
		return false
	}
	code := make([]byte, len(want))
	n, _ := f.reader.ReadAt(code, int64(offset))
	return n == len(want) && bytes.Equal(code, want)
}

// signalReturn is the name that the C library gives to that code.
func signalReturn(machine elf.Machine) string {
	if machine == elf.EM_X86_64 {
		return "__restore_rt"
	}
	return "__kernel_rt_sigreturn"
}
