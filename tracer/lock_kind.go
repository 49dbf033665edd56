package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"

	"memtrace/bpf"
	"memtrace/tracer/heap"
	"memtrace/tracer/lockcode"
	"memtrace/tracer/recording"
)

// describeKinds tells of each lock what it is, what it is called and, where its word says
// so, who holds it.
func (f *lockFamily) describeKinds(ctx context.Context, locks []recording.Lock, s lockState) error {
	arenas, err := f.arenas(ctx)
	if err != nil {
		return err
	}
	threads := f.tracee.innerThreads()
	words := map[recording.Address]bpf.LockLock{}
	for key, lock := range s.locks {
		words[recording.Address(key.Address)] = lock
	}
	for i := range locks {
		l := &locks[i]
		if name, is := arenas[uint64(l.Address)]; is {
			l.Kind, l.Name = "arena", name
			continue
		}
		facts := factsOf(l)
		word := words[l.Address]
		l.Kind = facts.Kind
		if l.Kind == "" {
			l.Kind = kindByWord(word, threads)
		}
		l.Name = f.lockName(l, facts)
		if l.Kind != "mutex" || l.Waiting == 0 {
			continue
		}
		l.Owner = f.owner(l, threads)
		byValue := facts.Kind == "" && word.Seen&bpf.LockLockSeenSEEN_PI == 0
		if byValue && word.Waits+word.Wakes == 0 && l.Owner == nil {
			// Its waiters slept before the trace and to its end: only their value was seen,
			// which other locks use as well.
			l.Kind = "unknown"
		}
	}
	return nil
}

// factsOf reads the stacks of a lock's waiters, or wakers where nobody has waited.
func factsOf(l *recording.Lock) lockcode.Facts {
	var facts lockcode.Facts
	for _, waiter := range l.Waiters {
		if facts = lockcode.Of(waiter.Stack); facts.Kind != "" {
			return facts
		}
	}
	for _, waker := range l.Wakers {
		of := lockcode.Of(waker.Stack)
		if facts.Kind == "" {
			facts.Kind = of.Kind
		}
		if !facts.Found {
			facts.Caller, facts.Found = of.Caller, of.Found
		}
	}
	return facts
}

// kindByWord tells a lock's kind by the operations on it and the values waited on. A lock
// that does not fit stays unknown.
func kindByWord(word bpf.LockLock, threads map[int]liveThread) string {
	seen := word.Seen
	has := func(bit bpf.LockLockSeen) bool { return seen&bit != 0 }
	const threadIDBits = 0x3fffffff // FUTEX_TID_MASK
	_, isThread := threads[int(word.Value&threadIDBits)]
	switch {
	case has(bpf.LockLockSeenSEEN_PI):
		return "mutex"
	case has(bpf.LockLockSeenSEEN_EXIT_WAKE):
		return "join"
	case word.Value > 2 && isThread && !has(bpf.LockLockSeenSEEN_WAIT_ZERO):
		return "join"
	case has(bpf.LockLockSeenSEEN_WAIT_TWO) && !has(bpf.LockLockSeenSEEN_WAIT_ZERO|bpf.LockLockSeenSEEN_WAIT_ONE|bpf.LockLockSeenSEEN_WAIT_OTHER):
		return "mutex"
	}
	return "unknown"
}

// lockName names a lock: the symbol of a static one, else who asked for it.
func (f *lockFamily) lockName(l *recording.Lock, facts lockcode.Facts) string {
	if facts.Name != "" {
		return facts.Name
	}
	if name, offset := f.tracee.symbols.Symbol(uint64(l.Address)); name != "" {
		if offset == 0 {
			return name
		}
		return fmt.Sprintf("%s+%#x", name, offset)
	}
	if !facts.Found {
		return ""
	}
	if facts.Caller.Function != "" {
		return facts.Caller.Function
	}
	if facts.Caller.Module != "" {
		return fmt.Sprintf("%s+%#x", path.Base(facts.Caller.Module), facts.Caller.Offset)
	}
	return ""
}

// arenas names the arenas of glibc by their addresses, which are those of their locks. A
// target that has none, or has ended, has no names.
func (f *lockFamily) arenas(ctx context.Context) (map[uint64]string, error) {
	if f.tracee.target.Allocator.Name != "glibc" {
		return nil, nil
	}
	reader, err := heap.Open(f.tracee.pid)
	if err != nil {
		return f.knownArenas, nil
	}
	list, err := reader.Arenas(ctx)
	if err := errors.Join(ctx.Err(), reader.Close()); err != nil {
		return nil, err
	}
	if err != nil {
		return f.knownArenas, nil
	}
	named := map[uint64]string{}
	for i, arena := range list {
		named[arena.Address] = fmt.Sprintf("arena %d", i)
		if arena.Main {
			named[arena.Address] = "main arena"
		}
	}
	f.knownArenas = named
	return named, nil
}

// Where a pthread_mutex_t keeps its owner and its kind, in bytes from the futex word, and
// the bits that a kind may have: glibc's <bits/pthreadtypes.h> and its mutex kinds.
const (
	mutexOwner    = 8
	mutexKind     = 16
	mutexSize     = 40
	mutexKindBits = 0x1ff
)

// owner reads who holds a pthread mutex. What lies there is believed only if it is a live
// thread of the target.
func (f *lockFamily) owner(l *recording.Lock, threads map[int]liveThread) *recording.LockOwner {
	var raw [mutexSize]byte
	if err := readMemory(f.tracee.pid, uint64(l.Address), raw[:]); err != nil {
		return nil
	}
	if binary.LittleEndian.Uint32(raw[mutexKind:])&^uint32(mutexKindBits) != 0 {
		return nil
	}
	thread, alive := threads[int(binary.LittleEndian.Uint32(raw[mutexOwner:]))]
	if !alive {
		return nil
	}
	return &recording.LockOwner{TID: thread.tid, Name: thread.name, Stack: recording.Stack{}}
}
