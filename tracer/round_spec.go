package tracer

import (
	"fmt"
	"strings"
	"time"
)

// roundKind is what separates two rounds of work.
type roundKind int

const (
	roundsNone roundKind = iota
	roundsAuto
	roundsFunction
	roundsMarker
	roundsLog
	roundsEvery
)

// roundSpec is a round specification of the contract, taken apart.
type roundSpec struct {
	kind  roundKind
	path  string        // func: the file that has the function, "" = any; usdt: the provider
	name  string        // the function, the marker, or the text of a line
	every time.Duration // by the clock
}

// perThread tells whether each thread has rounds of its own.
func (s roundSpec) perThread() bool { return s.kind == roundsAuto }

// ofProcess tells whether rounds are the whole process's.
func (s roundSpec) ofProcess() bool { return s.kind != roundsAuto && s.kind != roundsNone }

// Bounds of what a specification can ask for.
const (
	longestLogText = 64                    // bytes: LOG_TEXT of bpf/round_log.h
	shortestEvery  = 10 * time.Millisecond // the clock's rounds are cut in user space
)

// RoundError is a round specification that this target has nothing for, and what would be
// right. The command line is wrong then, not the target.
type RoundError struct {
	Spec   string
	Reason string
}

func (e *RoundError) Error() string { return fmt.Sprintf("--round %q: %s", e.Spec, e.Reason) }

// CheckRound tells what is wrong with a round specification of the contract, nil when it is
// well formed. Whether a function or marker exists is known only once the target is open.
func CheckRound(spec string) error {
	_, err := parseRound(spec)
	return err
}

// parseRound takes a specification apart.
func parseRound(spec string) (roundSpec, error) {
	kind, rest, parted := strings.Cut(spec, ":")
	switch {
	case spec == "auto":
		return roundSpec{kind: roundsAuto}, nil
	case spec == "none":
		return roundSpec{}, nil
	case !parted:
	case kind == "func":
		return parseFunction(spec, rest)
	case kind == "usdt":
		if provider, name, found := strings.Cut(rest, ":"); found && provider != "" && name != "" {
			return roundSpec{kind: roundsMarker, path: provider, name: name}, nil
		}
		return roundSpec{}, fmt.Errorf("%q: want usdt:PROVIDER:NAME", spec)
	case kind == "log":
		return parseLog(spec, rest)
	case kind == "every":
		every, err := time.ParseDuration(rest)
		if err != nil || every < shortestEvery {
			return roundSpec{}, fmt.Errorf("%q: want a time of at least %s, such as every:60s", spec, shortestEvery)
		}
		return roundSpec{kind: roundsEvery, every: every}, nil
	}
	return roundSpec{}, fmt.Errorf("%q: want auto, func:SYMBOL, func:PATH:SYMBOL, usdt:PROVIDER:NAME, log:TEXT, every:TIME or none", spec)
}

// parseFunction parts the path from the symbol at the first colon that is not one of a pair:
// pairs are part of C++ and Rust names.
func parseFunction(spec, rest string) (roundSpec, error) {
	s := roundSpec{kind: roundsFunction, name: rest}
	for i := 0; i < len(rest); i++ {
		if rest[i] != ':' {
			continue
		}
		if i+1 < len(rest) && rest[i+1] == ':' {
			i++
			continue
		}
		s.path, s.name = rest[:i], rest[i+1:]
		if s.path == "" {
			return roundSpec{}, fmt.Errorf("%q: want func:SYMBOL or func:PATH:SYMBOL", spec)
		}
		break
	}
	if s.name == "" {
		return roundSpec{}, fmt.Errorf("%q names no function: want func:SYMBOL or func:PATH:SYMBOL", spec)
	}
	return s, nil
}

func parseLog(spec, text string) (roundSpec, error) {
	switch {
	case text == "":
		return roundSpec{}, fmt.Errorf("%q names no text: want log:TEXT, a part of a line that the target writes", spec)
	case strings.ContainsAny(text, "\n\x00"):
		return roundSpec{}, fmt.Errorf("%q: a line holds no line feed", spec)
	case len(text) > longestLogText:
		return roundSpec{}, fmt.Errorf("%q: want at most %d bytes of the line", spec, longestLogText)
	}
	return roundSpec{kind: roundsLog, name: text}, nil
}
