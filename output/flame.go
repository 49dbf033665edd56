package output

import (
	"cmp"
	"path"
	"slices"

	"memtrace/tracer/recording"
)

// Bounds of a flame graph: what is deeper is cut, what is narrower is left out, so that a
// picture of any recording opens at once.
const (
	deepestFlame   = 200
	narrowestFlame = 1.0 / 10_000 // of the whole
	mostFlameNodes = 20_000
)

// flameNode is a frame of a flame graph: a function called by those above it.
type flameNode struct {
	name, module string
	// weight and count are of the stacks through this frame; after is the weight in the
	// second recording of a comparison.
	weight, after float64
	count         uint64
	children      []*flameNode
	leftOut       int // of the children, those that are too narrow
}

// span is how wide the frame is drawn; in a comparison both recordings have their part.
func (n *flameNode) span() float64 { return n.weight + n.after }

// title names the frame and its module.
func (n *flameNode) title() string {
	if n.module == "" {
		return n.name
	}
	return n.name + " (" + n.module + ")"
}

// flameTree joins stacks into a tree, callers above. Frames of one name and module are one.
type flameTree struct {
	root  *flameNode
	index map[flameKey]*flameNode
}

type flameKey struct {
	parent       *flameNode
	name, module string
}

func newFlameTree() *flameTree {
	return &flameTree{&flameNode{name: "all"}, map[flameKey]*flameNode{}}
}

// add adds a stack, leaf first, with the allocator's entry as its leaf.
func (t *flameTree) add(entry string, stack recording.Stack, weight, after float64, count uint64) {
	node := t.root
	node.take(weight, after, count)
	for i := len(stack) - 1; i >= 0 && len(stack)-i <= deepestFlame; i-- {
		node = t.child(node, clip(printable(frameName(stack[i])), longestOnPage), printable(path.Base(stack[i].Module)))
		node.take(weight, after, count)
	}
	if entry != "" {
		node = t.child(node, clip(printable(entry), longestOnPage), "allocator")
		node.take(weight, after, count)
	}
}

func (n *flameNode) take(weight, after float64, count uint64) {
	n.weight += weight
	n.after += after
	n.count += count
}

func (t *flameTree) child(parent *flameNode, name, module string) *flameNode {
	if module == "." || module == "/" {
		module = ""
	}
	key := flameKey{parent, name, module}
	node := t.index[key]
	if node == nil {
		node = &flameNode{name: name, module: module}
		t.index[key] = node
		parent.children = append(parent.children, node)
	}
	return node
}

// finish leaves out what is too narrow to see, and the narrowest where there are too many
// frames. It puts children in the order of their names, so that two pictures of one program
// look alike.
func (t *flameTree) finish() *flameNode {
	prune(t.root, func(n *flameNode) bool { return n.span() == 0 || n.span() < t.root.span()*narrowestFlame })
	all := t.root.preorder(nil)
	if len(all) <= mostFlameNodes {
		return t.root
	}
	// Stable: of frames of one width whole stacks stay, since callers come before callees.
	slices.SortStableFunc(all, func(a, b *flameNode) int { return cmp.Compare(b.span(), a.span()) })
	dropped := map[*flameNode]bool{}
	for _, n := range all[mostFlameNodes:] {
		dropped[n] = true
	}
	prune(t.root, func(n *flameNode) bool { return dropped[n] })
	return t.root
}

// prune takes out the frames that are not wanted, with all below them, and sorts the rest.
func prune(n *flameNode, unwanted func(*flameNode) bool) {
	all := len(n.children)
	n.children = slices.DeleteFunc(n.children, unwanted)
	n.leftOut += all - len(n.children)
	slices.SortFunc(n.children, func(a, b *flameNode) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.module, b.module))
	})
	for _, c := range n.children {
		prune(c, unwanted)
	}
}

// preorder lists the frames, each before those below it.
func (n *flameNode) preorder(list []*flameNode) []*flameNode {
	list = append(list, n)
	for _, c := range n.children {
		list = c.preorder(list)
	}
	return list
}

// depth is the number of rows of the picture.
func (n *flameNode) depth() int {
	deepest := 0
	for _, c := range n.children {
		deepest = max(deepest, c.depth())
	}
	return deepest + 1
}

// flameOf makes the flame graph of one measure.
func flameOf(rec *recording.Recording, measure string) (root *flameNode, unit string, err error) {
	stacks, unit, err := weigh(rec, measure)
	if err != nil {
		return nil, "", err
	}
	tree := newFlameTree()
	for _, s := range stacks {
		tree.add(s.entry, s.stack, float64(s.weight), 0, s.count)
	}
	return tree.finish(), unit, nil
}

// diffTree makes the flame graph of a comparison, in bytes a second.
func diffTree(c *recording.Comparison) *flameNode {
	tree := newFlameTree()
	for _, s := range c.Stacks {
		tree.add(s.Entry, s.Stack, s.Before, s.After, 0)
	}
	return tree.finish()
}

// weightText writes a weight in its measure's unit.
func weightText(weight float64, unit string) string {
	switch unit {
	case "bytes":
		return sizeText(weight)
	case "nanoseconds":
		return durationText(int64(weight))
	case "bytes/s":
		return sizeText(weight) + "/s"
	}
	return figuresOf(weight)
}
