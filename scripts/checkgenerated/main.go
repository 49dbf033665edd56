// Command checkgenerated generates the BPF objects afresh and compares them with the
// committed ones, so that what users load is what the sources say.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	stale, err := check("bpf")
	if err != nil {
		fmt.Fprintln(os.Stderr, "checkgenerated:", err)
		os.Exit(1)
	}
	if len(stale) > 0 {
		fmt.Fprintf(os.Stderr, "not what the sources give (run make generate and commit): %s\n", strings.Join(stale, " "))
		os.Exit(1)
	}
}

// check regenerates the directory in place, names the files that changed and puts the
// files back as they were.
func check(directory string) (stale []string, err error) {
	before, err := generated(directory)
	if err != nil {
		return nil, err
	}
	defer func() {
		if restoreErr := restore(directory, before); err == nil {
			err = restoreErr
		}
	}()
	command := exec.Command("go", "generate", "./"+directory)
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go generate ./%s: %w\n%s", directory, err, out)
	}
	after, err := generated(directory)
	if err != nil {
		return nil, err
	}
	for path, content := range after {
		if !bytes.Equal(content, before[path]) {
			stale = append(stale, path)
		}
	}
	for path := range before {
		if _, found := after[path]; !found {
			stale = append(stale, path)
		}
	}
	return stale, nil
}

// generated reads the files that bpf2go writes: objects, and the Go code beside them.
func generated(directory string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, pattern := range []string{"*_bpfel*.o", "*_bpfel*.go", "*_x86_bpfel.*", "*_arm64_bpfel.*"} {
		paths, err := filepath.Glob(filepath.Join(directory, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files[path] = content
		}
	}
	return files, nil
}

// restore writes the files back and removes those that were not there.
func restore(directory string, before map[string][]byte) error {
	now, err := generated(directory)
	if err != nil {
		return err
	}
	for path := range now {
		if _, found := before[path]; !found {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for path, content := range before {
		if bytes.Equal(now[path], content) {
			continue
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
