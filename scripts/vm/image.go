package vm

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
)

// image is an initial file system: paths in the machine, and the files of this machine that
// they are copies of, or their contents.
type image struct {
	files    map[string]string
	contents map[string]string
}

// write writes the image in the format that the kernel unpacks (cpio "newc",
// Documentation/driver-api/early-userspace/buffer-format.rst).
func (i image) write(file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closing := out.Close(); err == nil {
			err = closing
		}
	}()
	w := &archive{w: bufio.NewWriter(out)}
	for _, directory := range i.directories() {
		w.entry(directory, 0o40755, 0, strings.NewReader(""))
	}
	for name, text := range i.contents {
		w.entry(name, 0o100644, int64(len(text)), strings.NewReader(text))
	}
	for name, source := range i.files {
		if err := w.copy(name, source); err != nil {
			return err
		}
	}
	w.entry("TRAILER!!!", 0, 0, strings.NewReader(""))
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}

// directories lists the directories of all files, parents first.
func (i image) directories() []string {
	seen := map[string]bool{}
	for _, names := range []map[string]string{i.files, i.contents} {
		for name := range names {
			for d := path.Dir(name); d != "." && d != "/"; d = path.Dir(d) {
				seen[d] = true
			}
		}
	}
	var all []string
	for d := range seen {
		all = append(all, d)
	}
	sort.Strings(all)
	return all
}

// archive is an archive that is being written; its first error stays.
type archive struct {
	w     *bufio.Writer
	inode int
	err   error
}

// copy adds an executable file.
func (a *archive) copy(name, source string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	a.entry(name, 0o100755, info.Size(), file)
	return a.err
}

// entry adds one entry: a header of hexadecimal numbers, the name, the contents, each padded
// to four bytes.
func (a *archive) entry(name string, mode int, size int64, contents io.Reader) {
	if a.err != nil {
		return
	}
	name = strings.TrimPrefix(name, "/")
	a.inode++
	const links, headerBytes = 1, 110
	fields := []any{a.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name) + 1, 0}
	_, a.err = fmt.Fprintf(a.w, "070701"+strings.Repeat("%08x", len(fields))+"%s\x00", append(fields, name)...)
	a.pad(headerBytes + int64(len(name)) + 1)
	if a.err == nil {
		_, a.err = io.CopyN(a.w, contents, size)
	}
	a.pad(size)
}

func (a *archive) pad(written int64) {
	if a.err == nil {
		_, a.err = a.w.WriteString("\x00\x00\x00"[:(4-written%4)%4])
	}
}
