// Package house holds the rules of the module that a compiler does not check: which
// package may import which, and how long a file may grow.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "memtrace"

// mayImport lists, for each part of the module, the parts it may import. A part is a
// directory and all below it that have no row of their own. internal/ serves tests.
var mayImport = map[string][]string{
	"bpf":              {},
	"cmd":              {"cmd", "tracer", "tracer/target", "tracer/probe", "tracer/heap", "tracer/finding", "tracer/compare", "tracer/recording", "symbolize", "output", "internal"},
	"tracer":           {"tracer", "tracer/target", "tracer/probe", "tracer/heap", "tracer/finding", "tracer/recording", "bpf", "symbolize", "symbolize/unwind"},
	"tracer/target":    {"tracer/target", "tracer/probe", "tracer/recording", "symbolize"},
	"tracer/probe":     {"tracer/probe", "tracer/recording", "bpf", "symbolize"},
	"tracer/heap":      {"tracer/heap", "tracer/target", "tracer/recording", "symbolize"},
	"tracer/finding":   {"tracer/finding", "tracer/recording"},
	"tracer/compare":   {"tracer/compare", "tracer/finding", "tracer/recording"},
	"tracer/recording": {},
	"symbolize":        {"symbolize", "symbolize/unwind", "tracer/recording"},
	"symbolize/unwind": {"symbolize/unwind"},
	"output":           {"output", "tracer/recording"},
	"internal":         {"internal"},
	"scripts":          {"scripts", "internal"},
	// The yardstick is an empty probe on the sites that memtrace probes.
	"scripts/bench": {"scripts", "internal", "tracer/probe", "tracer/target"},
}

// maxLines is the most lines that a hand-written file may have.
const maxLines = 450

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range packages(t) {
		from := part(p.ImportPath)
		allowed, known := mayImport[from]
		if !known {
			t.Errorf("%s: part %q has no row in mayImport: give it one, and a place in ARCHITECTURE.md", p.ImportPath, from)
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module+"/") {
				continue
			}
			if to := part(imported); !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may import only %v", p.ImportPath, imported, from, allowed)
			}
		}
	}
}

func TestGeneratedTypesStayInTracer(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(p.Imports, module+"/bpf") && part(p.ImportPath) != "tracer" && part(p.ImportPath) != "tracer/probe" {
			t.Errorf("%s imports %s/bpf: generated BPF types do not leave tracer", p.ImportPath, module)
		}
	}
}

func TestFilesStayShort(t *testing.T) {
	err := filepath.WalkDir(root(t), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !sourceFile(entry.Name()) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if lines := bytes.Count(content, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by purpose", path, lines, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sourceFile tells whether people write the file.
func sourceFile(name string) bool {
	if strings.Contains(name, "_bpfel") {
		return false
	}
	return slices.Contains([]string{".go", ".c", ".h", ".cc"}, filepath.Ext(name))
}

// part returns the row of mayImport that a package belongs to.
func part(importPath string) string {
	path := strings.TrimPrefix(importPath, module+"/")
	for path != "." {
		if _, known := mayImport[path]; known {
			return path
		}
		path = filepath.Dir(path)
	}
	return importPath
}

// packages lists the module's packages with the imports of their non-test files.
func packages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	command.Dir = root(t)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// root returns the module's directory.
func root(t *testing.T) string {
	t.Helper()
	directory, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return directory
}
