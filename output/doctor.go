package output

import (
	"encoding/json"
	"io"
	"strings"

	"memtrace/tracer/recording"
)

// Doctor writes what the machine, and a process, allow: a line for each capability, and
// below each "no" what to do.
func Doctor(w io.Writer, c *recording.Checkup, o Options) error {
	p := newPage(w, o)
	p.line("%s", p.bold(doctorSentence(c)))
	group := ""
	for _, capability := range c.Capabilities {
		if capability.Group != group {
			group = capability.Group
			p.heading("%s", strings.ToUpper(group[:1])+group[1:])
		}
		doctorLine(p, c, capability)
	}
	return p.w.Flush()
}

// DoctorJSON writes the same as one JSON object.
func DoctorJSON(w io.Writer, c *recording.Checkup) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(c)
}

// doctorSentence is the whole answer in one line.
func doctorSentence(c *recording.Checkup) string {
	missing := c.Missing()
	switch {
	case len(missing) > 0:
		return "memtrace cannot trace here: " + plural(uint64(len(missing)), "necessary thing") + " missing, marked NO"
	case c.PID == 0:
		return "memtrace can trace on this machine (Linux " + printable(c.Kernel) + ", " + c.Arch + ")"
	}
	return "memtrace can trace this process (Linux " + printable(c.Kernel) + ", " + c.Arch + ")"
}

// doctorLine writes one capability: its state, its name, what was found, what to do.
func doctorLine(p *page, c *recording.Checkup, capability recording.Capability) {
	mark := p.escape("32", "yes")
	switch {
	case !capability.Available && capability.Required:
		mark = p.escape("1;31", "NO ")
	case !capability.Available:
		mark = p.escape("33", "no ")
	}
	width := doctorNameWidth(c, capability.Group)
	name := clip(printable(capability.Name), width)
	text := printable(capability.Detail)
	if capability.Next != "" {
		text += " → " + printable(capability.Next)
	}
	lead := "  " + mark + "  " + name + strings.Repeat(" ", width-columns(name)) + "  "
	p.paragraphAfter(lead, len("  yes  ")+width+len("  "), text)
}

// doctorNameWidth is how wide the names of a group are, within bounds.
func doctorNameWidth(c *recording.Checkup, group string) int {
	const widest = 44
	width := 0
	for _, capability := range c.Capabilities {
		if capability.Group == group {
			width = max(width, columns(printable(capability.Name)))
		}
	}
	return min(width, widest)
}
