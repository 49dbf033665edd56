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
}

// htmlMeasure is one flame graph. Nodes holds five numbers a frame, callers first: depth,
// index of the name, index of the module, weight, count.
type htmlMeasure struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Counted string    `json:"counted"`
	Nodes   []float64 `json:"nodes"`
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
	f := &htmlFlame{}
	names, modules := map[string]int{}, map[string]int{}
	for _, m := range measures() {
		root, unit, err := flameOf(rec, m.name)
		if err != nil || root.weight == 0 {
			continue // its probe was off
		}
		graph := htmlMeasure{Name: m.name, Unit: unit, Counted: countedBy(m.name)}
		var write func(*flameNode, int)
		write = func(n *flameNode, depth int) {
			graph.Nodes = append(graph.Nodes, float64(depth), float64(place(names, n.name)), float64(place(modules, n.module)), n.weight, float64(n.count))
			for _, c := range n.children {
				write(c, depth+1)
			}
		}
		write(root, 0)
		f.Measures = append(f.Measures, graph)
	}
	if len(f.Measures) == 0 {
		return nil
	}
	f.Names, f.Modules = listed(names), listed(modules)
	for _, module := range f.Modules {
		f.Colours = append(f.Colours, moduleColour(module))
	}
	return f
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
