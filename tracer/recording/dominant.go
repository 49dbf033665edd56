package recording

// Dominant names the function that a person would name for what sites allocate: the
// innermost one that at least half of the bytes come from, but for small functions that
// several others call (a copy, a buffer that grows), which say nothing about the purpose.
// weight is how many bytes of a site count. share is the function's part of all of them; the
// name is "" when nothing is known.
func Dominant(sites []Site, weight func(*Site) uint64) (function string, share float64) {
	const half = 0.5
	total := 0.0
	seen := map[string]*callee{}
	for i := range sites {
		bytes := float64(weight(&sites[i]))
		total += bytes
		if bytes > 0 {
			noteStack(seen, sites[i].Stack, bytes)
		}
	}
	var best *callee
	for name, c := range seen {
		c.name = name
		if c.bytes >= half*total && (best == nil || c.innerThan(best)) {
			best = c
		}
	}
	if best == nil {
		return "", 0
	}
	return best.name, best.bytes / total
}

// callee is a function on the stacks of sites.
type callee struct {
	name    string
	bytes   float64
	depth   float64         // from the leaf, times bytes
	callers map[string]bool // the functions right above, named or not
	named   map[string]bool // the first above that have names
}

// noteStack adds a site to all functions on its stack, each once.
func noteStack(seen map[string]*callee, stack Stack, bytes float64) {
	noted := map[string]bool{}
	for depth, frame := range stack {
		name := frame.Function
		if name == "" {
			continue
		}
		c := seen[name]
		if c == nil {
			c = &callee{callers: map[string]bool{}, named: map[string]bool{}}
			seen[name] = c
		}
		c.noteCallers(name, stack[depth+1:])
		if noted[name] {
			continue
		}
		noted[name] = true
		c.bytes += bytes
		c.depth += bytes * float64(depth)
	}
}

// noteCallers notes who has called the function: its caller, and the first one with a name.
func (c *callee) noteCallers(name string, above Stack) {
	if len(above) == 0 || above[0].Function == name {
		return
	}
	caller := above[0].Function
	if caller == "" {
		caller = above[0].Address.String()
	}
	c.callers[caller] = true
	for _, frame := range above {
		if frame.Function != "" {
			c.named[frame.Function] = true
			return
		}
	}
}

// shared tells whether several functions call it.
func (c *callee) shared() bool { return len(c.callers) > 1 || len(c.named) > 1 }

// innerThan tells whether c names the purpose better than the other.
func (c *callee) innerThan(other *callee) bool {
	if c.shared() != other.shared() {
		return other.shared()
	}
	depth, otherDepth := c.depth/c.bytes, other.depth/other.bytes
	if depth != otherDepth {
		return depth < otherDepth
	}
	return c.name < other.name
}
