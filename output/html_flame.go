package output

import (
	"encoding/json"
	"html/template"

	"memtrace/tracer/recording"
)

// htmlFlame is the data of the page's flame graphs, one for each measure that the recording
// has something for. The script html/flame.js draws it; its form is theirs alone.
type htmlFlame struct {
	Measures []htmlMeasure `json:"measures"`
	Names    []string      `json:"names"`
	Modules  []string      `json:"modules"`
	Colours  []string      `json:"colours"` // of the modules
	// Shades are the colours of a comparison, from what only the first recording has to what
	// only the second has.
	Shades []string `json:"shades,omitempty"`
}

// htmlMeasure is one flame graph. Nodes holds five numbers a frame, callers first: depth,
// index of the name, index of the module, weight, count; in a comparison the weight after
// stands for the count.
type htmlMeasure struct {
	Name     string    `json:"name"`
	Unit     string    `json:"unit"`
	Counted  string    `json:"counted"`
	Compared bool      `json:"compared,omitempty"`
	Nodes    []float64 `json:"nodes"`
}

// htmlFlames is the part of the page: the graphs, and the one that is shown first.
type htmlFlames struct {
	Measure string
	Data    *htmlFlame
}

func newFlames(rec *recording.Recording, measure string) *htmlFlames {
	data := newFlame(rec)
	if data == nil {
		return nil
	}
	return &htmlFlames{measure, data}
}

// newFlame makes the flame graphs; nil where there is nothing to show.
func newFlame(rec *recording.Recording) *htmlFlame {
	b := newFlameData()
	for _, m := range measures() {
		root, unit, err := flameOf(rec, m.name)
		if err != nil || root.weight == 0 {
			continue // its probe was off
		}
		b.add(htmlMeasure{Name: m.name, Unit: unit, Counted: countedBy(m.name)}, root)
	}
	return b.finish()
}

// newDiffFlames is the differential flame graph of a comparison; nil where both are empty.
func newDiffFlames(c *recording.Comparison) *htmlFlames {
	root := diffTree(c)
	if root.span() == 0 {
		return nil
	}
	const name, shades = "bytes allocated", 41
	b := newFlameData()
	b.add(htmlMeasure{Name: name, Unit: "bytes/s", Compared: true}, root)
	for i := range shades {
		after := float64(i) / (shades - 1)
		b.data.Shades = append(b.data.Shades, changeColour(&flameNode{weight: 1 - after, after: after}))
	}
	return &htmlFlames{name, b.finish()}
}

// flameData collects graphs; names and modules that they share are kept once.
type flameData struct {
	data           *htmlFlame
	names, modules map[string]int
}

func newFlameData() *flameData {
	return &flameData{&htmlFlame{}, map[string]int{}, map[string]int{}}
}

func (b *flameData) add(graph htmlMeasure, root *flameNode) {
	var write func(*flameNode, int)
	write = func(n *flameNode, depth int) {
		fifth := float64(n.count)
		if graph.Compared {
			fifth = n.after
		}
		graph.Nodes = append(graph.Nodes, float64(depth), float64(place(b.names, n.name)), float64(place(b.modules, n.module)), n.weight, fifth)
		for _, c := range n.children {
			write(c, depth+1)
		}
	}
	write(root, 0)
	b.data.Measures = append(b.data.Measures, graph)
}

// finish returns the data, nil where no graph was added.
func (b *flameData) finish() *htmlFlame {
	if len(b.data.Measures) == 0 {
		return nil
	}
	b.data.Names, b.data.Modules = listed(b.names), listed(b.modules)
	for _, module := range b.data.Modules {
		b.data.Colours = append(b.data.Colours, moduleColour(module))
	}
	return b.data
}

// JSON is the data for the page; html/template escapes what a script must not hold.
func (f *htmlFlame) JSON() (template.JS, error) {
	text, err := json.Marshal(f) // escapes <, > and & as well
	return template.JS(text), err
}

// place is where a text stands in a list that grows with it.
func place(places map[string]int, text string) int {
	at, known := places[text]
	if !known {
		at = len(places)
		places[text] = at
	}
	return at
}

func listed(places map[string]int) []string {
	all := make([]string, len(places))
	for text, at := range places {
		all[at] = text
	}
	return all
}
