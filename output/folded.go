package output

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strings"

	"memtrace/tracer/recording"
)

// Folded writes one line a stack, root first: "main;serve;parse;malloc 65536". It is what
// flame graph programs read. Equal stacks are summed; lines are sorted.
func Folded(w io.Writer, rec *recording.Recording, o Options) error {
	stacks, _, err := weigh(rec, o.measure())
	if err != nil {
		return err
	}
	weights := map[string]uint64{}
	for _, s := range stacks {
		weights[foldedStack(s)] += s.weight
	}
	lines := make([]string, 0, len(weights))
	for line := range weights {
		lines = append(lines, line)
	}
	sort.Strings(lines)
	buffered := bufio.NewWriter(w)
	for _, line := range lines {
		fmt.Fprintf(buffered, "%s %d\n", line, weights[line])
	}
	return buffered.Flush()
}

// foldedStack joins the frames, root first, with the allocator's entry as the leaf.
func foldedStack(s weighedStack) string {
	frames := make([]string, 0, len(s.stack)+1)
	for i := len(s.stack) - 1; i >= 0; i-- {
		frames = append(frames, foldedFrame(frameName(s.stack[i])))
	}
	if s.entry != "" {
		frames = append(frames, foldedFrame(s.entry))
	}
	if len(frames) == 0 {
		return "[no stack]"
	}
	return strings.Join(frames, ";")
}

// foldedFrame keeps a name printable, on its line and in its frame: semicolons part frames.
func foldedFrame(name string) string {
	return strings.ReplaceAll(printable(name), ";", ":")
}
