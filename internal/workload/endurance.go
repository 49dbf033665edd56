package workload

import "os"

// Cycles is how often a test of endurance repeats what it does: a few times by default, all
// of them under `make endurance`.
func Cycles(few, all int) int {
	if os.Getenv("MEMTRACE_ENDURANCE") != "" {
		return all
	}
	return few
}
