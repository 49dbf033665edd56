package symbolize

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"slices"
	"sort"
)

const (
	scopeCost      = 56      // bytes of one scope
	maxScopes      = 1 << 20 // of one unit
	maxInlineDepth = 128     // levels of inlining reported at one address
	maxOrigins     = 8       // references followed from a function's code to its name
)

// scope is a range of addresses that belongs to a function, or to one inlined call of it.
type scope struct {
	low, high          uint64
	name               string
	callFile, callLine int32 // where the inlined call stands
	parent             int32 // index of the scope around it; -1 for none
	depth              int32
	inlined            bool
}

// scopesAt returns the scopes around an address, the innermost first.
func scopesAt(scopes []scope, address uint64) []scope {
	var chain []scope
	i := sort.Search(len(scopes), func(i int) bool { return scopes[i].low > address }) - 1
	for ; i >= 0 && len(chain) < maxInlineDepth; i = int(scopes[i].parent) {
		if s := scopes[i]; address < s.high {
			chain = append(chain, s)
			if !s.inlined {
				break
			}
		}
	}
	return chain
}

// scopeWalk collects the scopes of one unit.
type scopeWalk struct {
	info     *debugInfo
	data     *dwarf.Data
	left     int64 // of the work that is allowed
	rootCost int64
	scopes   []scope
	pending  []entryName                // by scope: what its own entry says about its name
	names    map[dwarf.Offset]entryName // what the functions' entries say about theirs
	readable map[string]string          // names demangled
}

// run walks over all entries of the unit, which the reader is about to enter.
func (w *scopeWalk) run(reader *dwarf.Reader, root *dwarf.Entry) ([]scope, error) {
	w.names, w.readable = map[dwarf.Offset]entryName{}, map[string]string{}
	for depth := int32(1); root.Children && depth > 0; {
		entry, err := reader.Next()
		if err != nil {
			return nil, err
		}
		if entry == nil {
			break
		}
		if w.left -= entryCost(entry); w.left < 0 {
			return nil, fmt.Errorf("entries: %w", errLimit)
		}
		if entry.Tag == 0 {
			depth--
			continue
		}
		if entry.Tag == dwarf.TagSubprogram || entry.Tag == dwarf.TagInlinedSubroutine {
			if err := w.take(entry, depth); err != nil {
				return nil, err
			}
		}
		if entry.Children {
			depth++
		}
	}
	for i := range w.scopes {
		w.scopes[i].name = w.nameOf(w.pending[i])
	}
	return nest(w.scopes), nil
}

// entryCost is the work that decoding an entry was.
func entryCost(entry *dwarf.Entry) int64 {
	cost := int64(1 + len(entry.Field))
	for _, f := range entry.Field {
		if text, ok := f.Val.(string); ok {
			cost += int64(len(text))
		}
	}
	return cost
}

// take notes a function's name and the addresses of its code.
func (w *scopeWalk) take(entry *dwarf.Entry, depth int32) error {
	named := w.info.entryName(entry)
	if entry.Tag == dwarf.TagSubprogram {
		w.names[entry.Offset] = named
	}
	ranges, err := w.data.Ranges(entry)
	if err != nil {
		return nil // a bad list of ranges loses this function, not the unit
	}
	w.left -= w.rootCost + int64(len(ranges))
	if len(w.scopes)+len(ranges) > maxScopes {
		return fmt.Errorf("functions: %w", errLimit)
	}
	callFile, _ := entry.Val(dwarf.AttrCallFile).(int64)
	callLine, _ := entry.Val(dwarf.AttrCallLine).(int64)
	for _, r := range ranges {
		if r[0] >= r[1] || !w.info.code(r[0]) {
			continue
		}
		w.scopes = append(w.scopes, scope{
			low: r[0], high: r[1], depth: depth,
			callFile: int32(callFile), callLine: int32(callLine),
			inlined: entry.Tag == dwarf.TagInlinedSubroutine,
		})
		w.pending = append(w.pending, named)
	}
	return nil
}

// nameOf follows the references from an entry to the one that has the name.
func (w *scopeWalk) nameOf(n entryName) string {
	for range maxOrigins {
		if n.name != "" || n.origin == 0 {
			break
		}
		if n.other {
			n.name = w.info.alternateName(uint64(n.origin))
			break
		}
		next, known := w.names[n.origin]
		if !known {
			next = w.info.lookUpName(uint64(n.origin))
			w.names[n.origin] = next
		}
		n = next
	}
	readable, known := w.readable[n.name]
	if !known {
		readable = Demangle(n.name)
		w.readable[n.name] = readable
	}
	return readable
}

// nest sorts the scopes and links each to the one around it.
func nest(scopes []scope) []scope {
	slices.SortFunc(scopes, func(a, b scope) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(b.high, a.high), cmp.Compare(a.depth, b.depth))
	})
	around := int32(-1)
	for i := range scopes {
		for around >= 0 && scopes[around].high <= scopes[i].low {
			around = scopes[around].parent
		}
		scopes[i].parent = around
		around = int32(i)
	}
	return scopes
}
