package tracer

import (
	"fmt"

	"github.com/cilium/ebpf"

	"memtrace/bpf"
)

// putAutomaton fills the table by which the kernel half looks for a text in what is written,
// byte by byte: state n means that the first n bytes of the text have been seen. It is
// Knuth, Morris and Pratt's automaton (SIAM J. Comput. 6, 1977).
func putAutomaton(table *ebpf.Map, text string) error {
	for state, row := range automaton(text) {
		if err := table.Put(uint32(state), row); err != nil {
			return fmt.Errorf("put the text of the log lines into the kernel: %w", err)
		}
	}
	return nil
}

// automaton has a row for each number of bytes seen, from none to all.
func automaton(text string) []bpf.RoundLogState {
	rows := make([]bpf.RoundLogState, len(text)+1)
	rows[0].Next[text[0]] = 1
	border := 0 // the state in which the text without its first byte leaves the automaton
	for state := 1; state <= len(text); state++ {
		rows[state] = rows[border]
		if state < len(text) {
			rows[state].Next[text[state]] = uint8(state + 1)
			border = int(rows[border].Next[text[state]])
		}
	}
	return rows
}
