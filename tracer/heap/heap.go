// Package heap reads glibc's allocator state from outside the process: every arena, every
// heap, every chunk; which of it is resident, and what malloc_trim would give back. It sets
// no probe and does not stop the target, unless asked to.
//
// The figures are those of mallinfo2 (malloc/malloc.c), computed from the same lists.
package heap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// Options is how a snapshot is taken.
type Options struct {
	// Freeze stops the process for the walk, for an exact answer from one that allocates hard.
	Freeze bool
	// FreezeLimit bounds how long it stays stopped; 0 means DefaultFreezeLimit.
	FreezeLimit time.Duration
	// Attempts is how often a snapshot that tore is taken anew; 0 means DefaultAttempts.
	Attempts int
}

// Defaults of Options.
const (
	DefaultFreezeLimit = 5 * time.Second
	DefaultAttempts    = 5
)

// Reader reads the heap of one process. It is not safe for concurrent use.
type Reader struct {
	pid     int
	process procfs.Proc
	memory  Memory
	pages   *pagemap
	at      found
}

// Open finds glibc's state in the process with this id in our own PID namespace. The
// caller closes the reader.
func Open(pid int) (*Reader, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return nil, fmt.Errorf("no process %d: %w", pid, err)
	}
	r := &Reader{pid: pid, process: process, memory: processMemory(pid)}
	if r.at, err = find(r.memory, process); err != nil {
		return nil, err
	}
	if r.pages, err = openPagemap(pid); err != nil {
		return nil, err
	}
	return r, nil
}

// Close releases what the reader holds of the process.
func (r *Reader) Close() error { return r.pages.Close() }

// Location tells where glibc's state was found.
func (r *Reader) Location() Location { return r.at.Location }

// find locates glibc's state in a process.
func find(memory Memory, process procfs.Proc) (found, error) {
	space, err := readSpace(process)
	if err != nil {
		return found{}, err
	}
	lib, err := findLibrary(process.PID, space.maps)
	if err != nil {
		return found{}, err
	}
	defer lib.file.Close()
	at, err := locate(memory, lib, stateSymbols(process.PID, lib), space.page, space.heapStart)
	if errors.Is(err, os.ErrPermission) {
		return found{}, fmt.Errorf("read the memory of process %d (root, or CAP_SYS_PTRACE, may): %w", process.PID, err)
	}
	return at, err
}

// ArenaFacts is what one malloc_state says of itself, without walking its heaps.
type ArenaFacts struct {
	Address         uint64
	Main            bool
	AttachedThreads uint64
	SystemBytes     uint64
	Top             uint64
	Locked          bool
}

// Arenas reads the list of arenas, the main one first: a few hundred bytes each.
func (r *Reader) Arenas(ctx context.Context) ([]ArenaFacts, error) {
	states, err := arenaList(ctx, r.memory, r.at)
	if err != nil {
		return nil, err
	}
	facts := make([]ArenaFacts, len(states))
	for i, a := range states {
		facts[i] = ArenaFacts{a.address, a.address == r.at.MainArena, a.attached, a.systemMem, a.top, a.locked()}
	}
	return facts, nil
}

// arenaList follows the circular list of arenas.
func arenaList(ctx context.Context, memory Memory, at found) ([]*arenaState, error) {
	var states []*arenaState
	for address := at.MainArena; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(states) == maxArenas {
			return nil, errors.New("the list of arenas does not lead back to main_arena: it is corrupt")
		}
		state, err := readArena(memory, at.layout, address)
		if errors.Is(err, ErrGone) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("the list of arenas is corrupt: %w", err)
		}
		states = append(states, state)
		if address = state.next; address == at.MainArena {
			return states, nil
		}
	}
}
