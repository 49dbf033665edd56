package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// paged writes through a pager when standard output is a terminal and paging is wanted, as
// git does: $MEMTRACE_PAGER, else $PAGER, else less; less quits by itself when the text fits
// on the screen. An empty name or "cat" means none.
func (e *environment) paged(wanted bool, write func(io.Writer) error) error {
	program := pagerProgram(os.LookupEnv)
	if !wanted || program == "" || !isTerminal(e.stdout) || os.Getenv("TERM") == "dumb" {
		return write(e.stdout)
	}
	pager := exec.Command("/bin/sh", "-c", program)
	pager.Stdout, pager.Stderr = e.stdout, e.stderr
	pager.Env = os.Environ()
	if _, set := os.LookupEnv("LESS"); !set {
		pager.Env = append(pager.Env, "LESS=FRX")
	}
	input, err := pager.StdinPipe()
	if err != nil {
		return err
	}
	if pager.Start() != nil {
		return write(e.stdout) // no pager on this machine
	}
	err = write(input)
	if errors.Is(err, syscall.EPIPE) {
		err = nil // the reader has seen enough
	}
	return errors.Join(err, input.Close(), pager.Wait())
}

// pagerProgram is the command that shows long text, "" for none.
func pagerProgram(lookup func(string) (string, bool)) string {
	for _, name := range []string{"MEMTRACE_PAGER", "PAGER"} {
		program, set := lookup(name)
		if !set {
			continue
		}
		if program = strings.TrimSpace(program); program == "cat" {
			return ""
		}
		return program
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}
