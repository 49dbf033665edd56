package output

import (
	"fmt"
	"path"

	"memtrace/tracer/recording"
)

// frameName is what a frame is called in one word: its function, or module+offset where it
// has no name.
func frameName(f recording.Frame) string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Module != "":
		return fmt.Sprintf("%s+0x%x", path.Base(f.Module), f.Offset)
	case f.Unresolved != "" && f.Address == 0:
		return "[" + f.Unresolved + "]"
	}
	return f.Address.String()
}

// framePlace is where a frame's code is: file and line, or the module and why there is no
// better answer; "" where there is nothing to say.
func framePlace(f recording.Frame) string {
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
	case f.File != "":
		return path.Base(f.File)
	case f.Module != "" && f.Unresolved != "":
		return path.Base(f.Module) + ", " + f.Unresolved
	case f.Module != "":
		return path.Base(f.Module)
	}
	return f.Unresolved
}
