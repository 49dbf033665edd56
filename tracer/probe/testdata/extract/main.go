// Extract prints the first bytes of an allocator's functions, as the fixtures beside it hold
// them. The libraries come from Debian packages:
//
//	apt-get download libc6=VERSION && dpkg-deb -x libc6_*.deb DIRECTORY
//	go run ./tracer/probe/testdata/extract "libc6 VERSION" FILE > tracer/probe/testdata/prologues/NAME.txt
//
// A line holds the function, what it does, its size, the choice (offset and cost) and the
// bytes. Read the choices against a disassembly before committing them.
package main

import (
	"fmt"
	"os"

	"memtrace/tracer/target"
)

const kept = 64 // bytes of each function: the window of the choice

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: extract SOURCE FILE")
		os.Exit(2)
	}
	if err := extract(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

func extract(source, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	code, err := os.Open(path)
	if err != nil {
		return err
	}
	defer code.Close()
	allocator, err := target.Inspect(file)
	if err != nil {
		return err
	}
	fmt.Printf("# %s %s from the Debian package %s, amd64\n", allocator.Name, allocator.Version, source)
	for _, entry := range allocator.Entries {
		size := uint64(kept)
		if entry.Size != 0 {
			size = min(size, entry.Size)
		}
		bytes := make([]byte, size)
		n, _ := code.ReadAt(bytes, int64(entry.Offset))
		fmt.Printf("%s %s %d +%d %s %x\n", entry.Name, entry.Does, entry.Size, entry.Choice.Offset, entry.Choice.Cost, bytes[:n])
	}
	return nil
}
