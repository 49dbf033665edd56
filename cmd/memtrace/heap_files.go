package main

import (
	"encoding/json"
	"io"
	"path/filepath"

	"memtrace/output"
	"memtrace/tracer/recording"
)

// heapFile is a file that a reading of the heap goes to.
type heapFile struct {
	outputFile
	asJSON bool
}

// openHeapFiles checks the files of -o: a heap is written as .json or .txt.
func openHeapFiles(paths []string) ([]heapFile, error) {
	var files []heapFile
	for _, path := range paths {
		suffix := filepath.Ext(path)
		if suffix != ".json" && suffix != ".txt" {
			return nil, usageError("--output %s: a heap is written as .json or .txt", path)
		}
		file, err := openOutput(path)
		if err != nil {
			return nil, err
		}
		files = append(files, heapFile{file, suffix == ".json"})
	}
	return files, nil
}

// writeHeapFiles writes a reading into each file.
func writeHeapFiles(files []heapFile, h *recording.Heap, top int) error {
	for _, file := range files {
		err := file.writeBy(func(w io.Writer) error {
			if !file.asJSON {
				return output.Heap(w, h, output.Options{Top: top})
			}
			encoder := json.NewEncoder(w)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			return encoder.Encode(h)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
