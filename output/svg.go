package output

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"

	"memtrace/tracer/recording"
)

// Measures of the picture, in pixels. The font is one whose characters are equally wide, so
// that what fits into a frame can be reckoned.
const (
	svgWidth     = 1200.0
	svgRow       = 18.0
	svgMargin    = 12.0
	svgHead      = 84.0
	svgFoot      = 22.0
	svgNarrowest = 1.0 // narrower frames are left out, and counted
	svgCharacter = 6.7 // of the font at svgFont
	svgFont      = 11
)

// svgFlame is a flame graph as it is drawn: callers above, each frame as wide as its weight.
type svgFlame struct {
	w       *bufio.Writer
	root    *flameNode
	unit    string
	scale   float64 // pixels for a unit of weight
	colour  func(*flameNode) string
	tip     func(*flameNode) string
	legend  []flameSwatch
	leftOut int // frames that are too narrow
}

// FlameSVG writes the flame graph of the measure as a picture that is legible by itself.
func FlameSVG(w io.Writer, rec *recording.Recording, o Options) error {
	root, unit, err := flameOf(rec, o.measure())
	if err != nil {
		return err
	}
	f := &svgFlame{w: bufio.NewWriter(w), root: root, unit: unit, legend: moduleLegend(root), colour: func(n *flameNode) string { return moduleColour(n.module) }}
	f.tip = func(n *flameNode) string {
		return fmt.Sprintf("%s: %s, %s, %s", n.title(), weightText(n.weight, unit), percentText(n.weight/max(1, root.weight)), plural(n.count, countedBy(o.measure())))
	}
	title := fmt.Sprintf("%s (pid %d): %s", clip(printable(rec.Target.Command), 70), rec.Target.PID, o.measure())
	under := fmt.Sprintf("%s in all, traced for %s; callers above, as wide as their share", weightText(root.weight, unit), durationText(rec.Session.DurationNS))
	return f.draw(title, under)
}

// countedBy is what the count of a measure's stacks counts.
func countedBy(measure string) string {
	switch measure {
	case "lock-wait":
		return "wait"
	case "arena-created":
		return "arena"
	case "mmap-bytes":
		return "mapping"
	}
	return "call"
}

// DiffSVG writes a differential flame graph: a frame is as wide as what it allocates in both
// recordings together; red ones grew, blue ones shrank, pale ones stayed.
func DiffSVG(w io.Writer, c *recording.Comparison, _ Options) error {
	root := diffTree(c)
	f := &svgFlame{w: bufio.NewWriter(w), root: root, unit: "bytes/s", legend: changeLegend(), colour: changeColour}
	f.tip = func(n *flameNode) string {
		return fmt.Sprintf("%s: %s/s → %s/s", n.title(), sizeText(n.weight), sizeText(n.after))
	}
	title := fmt.Sprintf("%s: bytes allocated, before and after", clip(printable(c.After.Command), 70))
	under := fmt.Sprintf("%s/s → %s/s; callers above, as wide as both together", sizeText(root.weight), sizeText(root.after))
	return f.draw(title, under)
}

// draw writes the whole picture.
func (f *svgFlame) draw(title, under string) error {
	rows := f.root.depth()
	height := svgHead + float64(rows)*svgRow + svgFoot
	f.scale = (svgWidth - 2*svgMargin) / math.Max(f.root.span(), math.SmallestNonzeroFloat64)
	if math.IsInf(f.scale, 0) {
		f.scale = 0
	}
	fmt.Fprintf(f.w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" font-family="ui-monospace, 'DejaVu Sans Mono', monospace" font-size="%d">`+"\n",
		svgWidth, height, svgWidth, height, svgFont)
	fmt.Fprintf(f.w, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(f.w, `<text x="%g" y="26" font-size="16" font-weight="bold" fill="#1c2230">%s</text>`+"\n", svgMargin, escapeXML(title))
	fmt.Fprintf(f.w, `<text x="%g" y="46" font-size="12" fill="#5b6474">%s</text>`+"\n", svgMargin, escapeXML(under))
	f.drawLegend()
	if f.root.span() > 0 {
		f.frame(f.root, svgMargin, 0)
	}
	if f.leftOut > 0 {
		fmt.Fprintf(f.w, `<text x="%g" y="%g" fill="#5b6474">%s too narrow to draw left out, with what they call</text>`+"\n", svgMargin, height-7, plural(uint64(f.leftOut), "frame"))
	}
	fmt.Fprintln(f.w, "</svg>")
	return f.w.Flush()
}

// frame draws a frame and those that it calls below it.
func (f *svgFlame) frame(n *flameNode, x float64, row int) {
	width := n.span() * f.scale
	if width < svgNarrowest {
		f.leftOut++
		return
	}
	y := svgHead + float64(row)*svgRow
	colour := f.colour(n)
	if row == 0 {
		colour = "#e3e6ec"
	}
	fmt.Fprintf(f.w, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%g" rx="2" fill="%s"/>`,
		escapeXML(f.tip(n)), x, y, math.Max(svgNarrowest/2, width-0.5), svgRow-1, colour)
	if fits := int((width - 6) / svgCharacter); fits >= 3 {
		fmt.Fprintf(f.w, `<text x="%.1f" y="%.1f" fill="#111">%s</text>`, x+3, y+svgRow-5.5, escapeXML(clip(n.name, fits)))
	}
	fmt.Fprintln(f.w, "</g>")
	f.leftOut += n.leftOut
	for _, c := range n.children {
		f.frame(c, x, row+1)
		x += c.span() * f.scale
	}
}

// drawLegend writes what the colours mean, on one line.
func (f *svgFlame) drawLegend() {
	const swatch, y = 11.0, 68.0
	x := svgMargin
	for _, entry := range f.legend {
		width := swatch + 5 + float64(columns(entry.label))*svgCharacter + 14
		if x+width > svgWidth-svgMargin {
			return
		}
		fmt.Fprintf(f.w, `<rect x="%.1f" y="%g" width="%g" height="%g" rx="2" fill="%s"/><text x="%.1f" y="%g" fill="#5b6474">%s</text>`+"\n",
			x, y-swatch+1.5, swatch, swatch, entry.colour, x+swatch+5, y, escapeXML(entry.label))
		x += width
	}
}

// escapeXML writes text for XML; names come from the target.
func escapeXML(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(printable(text))); err != nil {
		return "?"
	}
	return b.String()
}
