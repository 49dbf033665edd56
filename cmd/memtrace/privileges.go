package main

import (
	"golang.org/x/sys/unix"

	"memtrace/tracer/privilege"
)

// dropPrivileges gives up what is needed no longer once the probes are in. writes tells that
// files will be written, into directories that may belong to the user who ran sudo.
func dropPrivileges(writes bool) error {
	kept := privilege.Tracing
	if writes {
		kept = append(kept[:len(kept):len(kept)], unix.CAP_DAC_OVERRIDE)
	}
	return privilege.Keep(kept...)
}
