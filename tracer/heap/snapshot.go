package heap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"memtrace/tracer/recording"
)

// pages tells which pages of a region are resident.
type pages interface {
	region(start, end uint64) (*residency, error)
}

// pass is one reading of the whole heap.
type pass struct {
	ctx    context.Context
	memory Memory
	pages  pages
	at     found
	look   func() (*space, error)
	space  *space
	params params
	cores  int

	arenas  []*arenaResult
	caches  cacheTotals
	mapped  mappedTotals
	ledger  recording.Ledger
	rounds  int
	changed string // what changed of the state that the arenas share
	notes   []string
}

// Snapshot reads the heap. It reads anew what the target changed meanwhile; the result
// says whether that succeeded. Corrupt lists do not fail it: they make it inconsistent.
//
// Consistent means what it means for mallinfo2, which locks one arena at a time: each arena's
// figures hang together. Different arenas are read at different times.
func (r *Reader) Snapshot(ctx context.Context, options Options) (*recording.Heap, error) {
	began := time.Now()
	rounds, freezes := options.attempts(), 1
	if options.Freeze {
		rounds, freezes = 1, rounds // what stood still in the midst of a change must run on first
	}
	var best *pass
	var frozen time.Duration
	var tries int
	for range freezes {
		p, stopped, err := r.take(ctx, options, rounds)
		frozen += stopped
		if err != nil {
			return nil, err
		}
		tries += p.rounds
		if best == nil || len(p.torn()) <= len(best.torn()) {
			best = p
		}
		if len(best.torn()) == 0 {
			break
		}
	}
	h := best.record()
	h.Time, h.WalkNS, h.Attempts = began, time.Since(began).Nanoseconds(), tries
	h.Frozen, h.FrozenNS = options.Freeze, frozen.Nanoseconds()
	h.Context = r.context()
	return h, nil
}

func (o Options) attempts() int {
	if o.Attempts <= 0 {
		return DefaultAttempts
	}
	return o.Attempts
}

// take makes one pass, with the process stopped if that was asked for.
func (r *Reader) take(ctx context.Context, options Options, rounds int) (*pass, time.Duration, error) {
	if !options.Freeze {
		p, err := r.pass(ctx, rounds)
		return p, 0, err
	}
	limit := options.FreezeLimit
	if limit <= 0 {
		limit = DefaultFreezeLimit
	}
	var p *pass
	stopped, err := whileFrozen(ctx, r.pid, limit, func(ctx context.Context) (err error) {
		p, err = r.pass(ctx, rounds)
		return err
	})
	return p, stopped, err
}

// pass reads everything, and what tore again, in at most so many rounds.
func (r *Reader) pass(ctx context.Context, rounds int) (*pass, error) {
	p := &pass{ctx: ctx, memory: bounded{ctx, r.memory}, pages: r.pages, at: r.at, cores: coresSeen(r.pid, r.at.layout)}
	p.look = func() (*space, error) { return readSpace(r.process) }
	if err := p.read(rounds); err != nil {
		return nil, err
	}
	if r.pages.zeroPage == 0 {
		p.notes = append(p.notes, "without CAP_SYS_ADMIN, memory that was only ever read counts as resident, although it is the kernel's shared zeros")
	}
	if err := p.balance(r.process); err != nil {
		return nil, err
	}
	return p, nil
}

// read walks all arenas, then again those that changed, with the shared state around them.
func (p *pass) read(rounds int) error {
	for p.rounds = 1; ; p.rounds++ {
		if err := p.round(); err != nil {
			return err
		}
		if len(p.torn()) == 0 || p.rounds == rounds {
			break
		}
		select {
		case <-p.ctx.Done():
			return p.ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	for _, a := range p.arenas {
		if a.sprawling && a.torn == nil {
			p.notes = append(p.notes, "the main arena is not one stretch of memory (other users of sbrk): counted by its lists")
		}
	}
	return nil
}

// round reads the shared state and every arena that no earlier round got whole.
func (p *pass) round() error {
	var err error
	if p.space, err = p.look(); err != nil {
		return err
	}
	if p.params, err = readParams(p.memory, p.at.layout.params, p.at.Params); err != nil {
		return err
	}
	states, err := arenaList(p.ctx, p.memory, p.at)
	if err != nil {
		return err
	}
	whole := map[uint64]*arenaResult{}
	for _, a := range p.arenas {
		if a.torn == nil {
			whole[a.state.address] = a
		}
	}
	p.arenas, p.changed, p.notes = nil, "", nil
	var caches []uint64
	for _, state := range states {
		result := whole[state.address]
		if result == nil {
			if result, err = p.walkArena(state.address); err != nil {
				return err
			}
		}
		p.arenas = append(p.arenas, result)
		caches = append(caches, result.tally.caches...)
	}
	if p.caches, err = p.countCaches(caches); err != nil {
		return err
	}
	if p.mapped, err = p.countMapped(); err != nil {
		return err
	}
	return p.confirm(states)
}

// confirm reads the shared state again: arenas that came, chunks that were mapped.
func (p *pass) confirm(states []*arenaState) error {
	later, err := arenaList(p.ctx, p.memory, p.at)
	if err != nil {
		return err
	}
	params, err := readParams(p.memory, p.at.layout.params, p.at.Params)
	if err != nil {
		return err
	}
	switch {
	case !slices.EqualFunc(states, later, func(a, b *arenaState) bool { return a.address == b.address }):
		p.changed = "arenas were created while the heap was read"
	case params.mmaps != p.params.mmaps || params.mmappedMem != p.params.mmappedMem || params.sbrkBase != p.params.sbrkBase:
		p.changed = "blocks were mapped while the heap was read"
	}
	return nil
}

// torn tells what did not add up.
func (p *pass) torn() []string {
	var torn []string
	for _, a := range p.arenas {
		if a.torn != nil {
			torn = append(torn, fmt.Sprintf("arena %#x: %v", a.state.address, a.torn))
		}
	}
	if p.changed != "" {
		torn = append(torn, p.changed)
	}
	return torn
}

// record turns the pass into its public form.
func (p *pass) record() *recording.Heap {
	h := &recording.Heap{
		Allocator:  recording.Allocator{Name: "glibc", Version: p.at.Version, Path: p.at.Library},
		Consistent: len(p.torn()) == 0,
		Layout:     p.at.Table,
		Arenas:     make([]recording.Arena, 0, len(p.arenas)),
		TCache:     recording.TCache{Threads: p.caches.threads, Chunks: p.caches.chunks, Bytes: p.caches.bytes},
		Limits:     p.limits(),
		Ledger:     p.ledger,
		Notes:      append([]string{}, p.notes...),
	}
	for _, a := range p.arenas {
		r := a.record()
		h.Arenas = append(h.Arenas, r)
		h.TrimForecastBytes += r.TrimmableBytes
	}
	h.MallInfo = p.mallinfo()
	if torn := p.torn(); len(torn) > 0 {
		h.Notes = append(h.Notes, tornNote(torn))
	}
	return h
}

// tornNote says what changed or is broken, without a line for each arena.
func tornNote(torn []string) string {
	if len(torn) == 1 {
		return "not consistent: " + torn[0]
	}
	return fmt.Sprintf("not consistent: %s (and %d more)", torn[0], len(torn)-1)
}

// mallinfo adds up what int_mallinfo (malloc/malloc.c) does.
func (p *pass) mallinfo() recording.MallInfo {
	m := recording.MallInfo{Hblks: uint64(p.params.mmaps), Hblkhd: p.params.mmappedMem}
	for _, a := range p.arenas {
		free := a.free()
		m.Arena += a.state.systemMem
		m.Ordblks += a.tally.binned + 1 // the top
		m.Smblks += a.tally.fastSeen
		m.Fsmblks += a.tally.fastBytes
		m.Fordblks += free
		m.Uordblks += a.state.systemMem - free
		if a.main {
			m.Keepcost = a.tally.topBytes
		}
	}
	return m
}

// context names the process.
func (r *Reader) context() recording.HeapContext {
	c := recording.HeapContext{PID: r.pid}
	if arguments, err := r.process.CmdLine(); err == nil && len(arguments) > 0 {
		c.Command = strings.Join(arguments, " ")
	} else {
		c.Command, _ = r.process.Comm()
	}
	if stat, err := r.process.Stat(); err == nil {
		c.Threads = stat.NumThreads
	}
	return c
}
