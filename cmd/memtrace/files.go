package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"memtrace/output"
	"memtrace/tracer/recording"
)

// outputFile is a file that a report goes to. That it can be written is checked before the
// trace, so that a trace is not lost for want of a place to write it; its path leads to the
// old contents until the new ones are complete.
type outputFile struct {
	path    string // links followed
	format  output.Format
	inPlace bool // a device or pipe: written directly, never renamed
}

// openOutputs checks the files of -o and finds their formats.
func openOutputs(paths []string) ([]outputFile, error) {
	var files []outputFile
	for _, path := range paths {
		file, err := openOutput(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// openOutput checks one file.
func openOutput(path string) (outputFile, error) {
	format, err := output.FormatForFile(path)
	if err != nil {
		return outputFile{}, usageError("%w", err)
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	o := outputFile{path: path, format: format}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return o, fmt.Errorf("write %s: it is a directory; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		o.inPlace = true
		return o, nil
	}
	file, err := o.create()
	if err != nil {
		return o, err
	}
	return o, errors.Join(file.Close(), os.Remove(file.Name()))
}

// create makes the file that is to take the path's place, beside it.
func (o outputFile) create() (*os.File, error) {
	if o.inPlace {
		file, err := os.OpenFile(o.path, os.O_WRONLY, 0)
		if err != nil {
			return nil, unwritable(o.path, err)
		}
		return file, nil
	}
	file, err := os.CreateTemp(filepath.Dir(o.path), "."+filepath.Base(o.path)+".*")
	if err != nil {
		return nil, unwritable(o.path, err)
	}
	return file, nil
}

// unwritable says which file cannot be written and why, without the temporary name.
func unwritable(path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return fmt.Errorf("write %s: %w; give a path that can be written", path, err)
}

// write renders the recording into a new file and puts it in its place.
func (o outputFile) write(rec *recording.Recording, options output.Options) error {
	return o.writeBy(func(w io.Writer) error { return o.format.Write(w, rec, options) })
}

// writeBy lets a function write a new file, and puts it in its place.
func (o outputFile) writeBy(write func(io.Writer) error) (err error) {
	file, err := o.create()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !o.inPlace {
			os.Remove(file.Name())
		}
	}()
	if err := buffered(file, write); err != nil {
		file.Close()
		return fmt.Errorf("write %s: %w", o.path, err)
	}
	if o.inPlace {
		return file.Close()
	}
	const readable = 0o644
	if err := errors.Join(file.Chmod(readable), file.Close(), os.Rename(file.Name(), o.path)); err != nil {
		return unwritable(o.path, err)
	}
	return nil
}

// render writes the recording through a buffer.
func render(w io.Writer, format output.Format, rec *recording.Recording, options output.Options) error {
	return buffered(w, func(w io.Writer) error { return format.Write(w, rec, options) })
}

// buffered lets a function write through a buffer.
func buffered(w io.Writer, write func(io.Writer) error) error {
	buffer := bufio.NewWriterSize(w, 1<<16)
	if err := write(buffer); err != nil {
		return err
	}
	return buffer.Flush()
}
