package output

import (
	"fmt"

	"memtrace/tracer/recording"
)

// textProcesses lists the target and the children that were traced with it.
func textProcesses(p *page, rec *recording.Recording) {
	all := rec.Target.Processes
	if len(all) < 2 {
		return
	}
	p.heading("Processes: the target and %s", plural(uint64(len(all)-1), "program")+" that its children ran")
	var rows [][]string
	for i, process := range all {
		if i == p.top {
			break
		}
		rows = append(rows, []string{fmt.Sprint(process.PID), fmt.Sprint(process.Parent), printable(process.Name),
			countText(process.Allocs), bytesText(process.Bytes)})
	}
	p.table([]column{{"pid", true}, {"parent", true}, {"name", false}, {"allocations", true}, {"bytes", true}}, rows)
	p.more(len(all), "row")
}
