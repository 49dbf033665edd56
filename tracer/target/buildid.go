package target

import (
	"golang.org/x/sys/unix"

	"memtrace/symbolize"
)

// BuildID reads the linker's identification of the executable, in hexadecimal: it tells
// whether two traces are of one program. "" where the executable has none or cannot be read.
func (t *Target) BuildID() string {
	exe, err := t.openProc("exe", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return ""
	}
	defer exe.Close()
	info, err := exe.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	file, err := symbolize.NewFile(exe, info.Size())
	if err != nil {
		return ""
	}
	return file.BuildID()
}
