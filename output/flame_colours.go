package output

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

// flameSwatch is a line of a flame graph's legend.
type flameSwatch struct{ colour, label string }

// moduleLegend names the modules with the widest frames, the widest first.
func moduleLegend(root *flameNode) []flameSwatch {
	widest := map[string]float64{}
	for _, n := range root.preorder(nil)[1:] {
		if n.module != "" {
			widest[n.module] = max(widest[n.module], n.span())
		}
	}
	modules := make([]string, 0, len(widest))
	for module := range widest {
		modules = append(modules, module)
	}
	slices.SortFunc(modules, func(a, b string) int { return cmp.Or(cmp.Compare(widest[b], widest[a]), cmp.Compare(a, b)) })
	const most, longest = 7, 28
	var legend []flameSwatch
	for i, module := range modules {
		if i == most {
			break
		}
		legend = append(legend, flameSwatch{moduleColour(module), clip(module, longest)})
	}
	if rest := len(modules) - most; rest > 0 {
		legend = append(legend, flameSwatch{"none", "and " + plural(uint64(rest), "other module")})
	}
	return legend
}

// moduleColour gives each module a colour of its own, the same in every picture.
func moduleColour(module string) string {
	if module == "allocator" || module == "" {
		return "#d7dbe3"
	}
	h := fnv.New32a()
	io.WriteString(h, module)
	const hues, lightnesses = 360, 4
	return fmt.Sprintf("hsl(%d,62%%,%d%%)", h.Sum32()%hues, 68+h.Sum32()/hues%lightnesses*4)
}

// changeLegend says what the colours of a differential flame graph mean.
func changeLegend() []flameSwatch {
	shade := func(before, after float64) string { return changeColour(&flameNode{weight: before, after: after}) }
	return []flameSwatch{
		{shade(1, 0), "only before"}, {shade(5, 4), "shrank"}, {shade(1, 1), "stayed"}, {shade(4, 5), "grew"}, {shade(0, 1), "only after"},
	}
}

// changeColour is pale where nothing changed, red where a frame grew, blue where it shrank.
func changeColour(n *flameNode) string {
	change := (n.after - n.weight) / math.Max(n.span(), math.SmallestNonzeroFloat64)
	strength := 93 - 38*math.Min(1, math.Abs(change)*2)
	switch {
	case math.Abs(change) < 0.025:
		return "#eceef2"
	case change > 0:
		return fmt.Sprintf("hsl(8,85%%,%.0f%%)", strength)
	}
	return fmt.Sprintf("hsl(215,80%%,%.0f%%)", strength)
}
