package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// workload is a program that does a piece of work for every request: one line or more on its
// standard input, answered with a line that holds done.
type workload struct {
	name    string
	build   func(directory string) error // nil: nothing to build
	command []string                     // "{}" stands for the directory
	request string
	done    string
	// whole: the program does its work once, when its standard input ends, and ends with it.
	whole bool
	// serve: the work is asked for by another program, which gets the directory; it prints a rate.
	serve     func(ctx context.Context, directory string, length time.Duration) (float64, error)
	directory string
}

func (w *workload) prepare(directory string) error {
	w.directory = directory
	if w.build == nil {
		return nil
	}
	return w.build(directory)
}

// process is a workload that runs.
type process struct {
	*exec.Cmd
	workload *workload
	stdin    io.WriteCloser
	stdout   *bufio.Reader
}

// start runs the workload, behind the prefix of a tool that starts its target itself.
func (w *workload) start(prefix []string) (*process, error) {
	words := append([]string(nil), prefix...)
	for _, word := range w.command {
		words = append(words, strings.ReplaceAll(word, "{}", w.directory))
	}
	p := &process{Cmd: exec.Command(words[0], words[1:]...), workload: w}
	p.Dir = w.directory
	var err error
	if p.stdin, err = p.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", words[0], err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", words[0], err)
	}
	p.stdout = bufio.NewReaderSize(out, 1<<20)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", words[0], err)
	}
	return p, p.warmUp()
}

// warmUp lets the program come to its steady state.
func (p *process) warmUp() error {
	const settle = 300 * time.Millisecond
	if p.workload.whole || p.workload.serve != nil {
		time.Sleep(settle)
		return nil
	}
	return p.ask()
}

// ask has the program do its work once.
func (p *process) ask() error {
	if _, err := io.WriteString(p.stdin, p.workload.request); err != nil {
		return fmt.Errorf("ask %s: %w", p.workload.name, err)
	}
	for {
		line, err := p.stdout.ReadString('\n')
		if strings.Contains(line, p.workload.done) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", p.workload.name, err)
		}
	}
}

// rate measures how much work is done, in pieces a second.
func (p *process) rate(ctx context.Context, length time.Duration) (float64, error) {
	switch {
	case p.workload.serve != nil:
		return p.workload.serve(ctx, p.workload.directory, length)
	case p.workload.whole:
		return p.once()
	}
	start, pieces := time.Now(), 0
	for time.Since(start) < length {
		if err := p.ask(); err != nil {
			return 0, err
		}
		pieces++
	}
	return float64(pieces) / time.Since(start).Seconds(), nil
}

// once hands a whole input over and waits for the program's end.
func (p *process) once() (float64, error) {
	start := time.Now()
	if _, err := io.WriteString(p.stdin, p.workload.request); err != nil {
		return 0, fmt.Errorf("feed %s: %w", p.workload.name, err)
	}
	if err := p.stdin.Close(); err != nil {
		return 0, fmt.Errorf("feed %s: %w", p.workload.name, err)
	}
	if _, err := io.Copy(io.Discard, p.stdout); err != nil {
		return 0, fmt.Errorf("wait for %s: %w", p.workload.name, err)
	}
	took := time.Since(start)
	return 1 / took.Seconds(), nil
}

// end ends the program and waits for it.
func (p *process) end() {
	p.stdin.Close()
	if err := p.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	// How a program that was killed ended says nothing.
	_ = p.Wait()
}

// compile builds a C program beside the workloads' other files.
func compile(name, source string, directory string) error {
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path+".c", []byte(source), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if out, err := exec.Command("gcc", "-O2", "-g", "-fno-builtin", "-pthread", "-o", path, path+".c").CombinedOutput(); err != nil {
		return fmt.Errorf("gcc %s: %w: %s", name, err, out)
	}
	return nil
}
