package unwind

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
)

// FuzzBuild makes the table of a file, whose .eh_frame is the target's and may be anything,
// and looks places up in it. The seeds are small libraries.
func FuzzBuild(f *testing.F) {
	seeds, err := filepath.Glob("../testdata/elf/*")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		headers := parse(data)
		if headers == nil {
			return
		}
		table, err := Build(headers, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		check(t, table)
	})
}

// parse reads the headers; debug/elf panics on some forged files, which is guarded against
// where files are opened.
func parse(data []byte) (headers *elf.File) {
	defer func() {
		if recover() != nil {
			headers = nil
		}
	}()
	headers, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	return headers
}

// check holds a table against what the kernel half relies on.
func check(t *testing.T, table *Table) {
	t.Helper()
	if table.Start%bucketBytes != 0 {
		t.Fatalf("the first bucket begins at %#x", table.Start)
	}
	for i, first := range table.Buckets {
		if int(first) > len(table.Rows) || i > 0 && first < table.Buckets[i-1] {
			t.Fatalf("bucket %d of %d begins at row %d of %d", i, len(table.Buckets), first, len(table.Rows))
		}
	}
	for i := range table.Buckets {
		table.Find(table.Start + uint64(i)*bucketBytes)
		table.Find(table.Start + uint64(i)*bucketBytes + bucketBytes - 1)
	}
	table.Find(0)
	table.Find(^uint64(0))
}
