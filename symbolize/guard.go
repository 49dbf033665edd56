package symbolize

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// errLimit says that a file asks for more than memtrace is ready to read for it.
var errLimit = errors.New("larger than the limit")

// guard calls into a library that is not hardened against hostile files. debug/elf,
// debug/dwarf and the decompressors can panic on them, and memory that shows a file faults
// when the file has been cut short meanwhile: both come back as an error.
func guard(what string, call func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s: malformed: %v", what, cause)
		}
	}()
	if err := call(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// allowance is an io.ReaderAt that stops with errLimit once more than left bytes were read.
type allowance struct {
	io.ReaderAt
	left int64
}

func (a *allowance) ReadAt(p []byte, offset int64) (int, error) {
	if int64(len(p)) > a.left {
		return 0, errLimit
	}
	n, err := a.ReaderAt.ReadAt(p, offset)
	a.left -= int64(n)
	return n, err
}
