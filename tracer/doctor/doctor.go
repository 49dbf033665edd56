// Package doctor finds out what this kernel, these privileges and a process allow, by
// trying, and says what to do about each "no". It attaches no probe.
package doctor

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"memtrace/tracer/recording"
)

// Examine looks at the machine, and at the process pid unless that is 0. A process that does
// not exist is refused with a *target.Refusal; whatever else is missing is a line of the answer.
func Examine(ctx context.Context, pid int) (*recording.Checkup, error) {
	c := &checkup{result: &recording.Checkup{
		Schema: recording.CheckupSchema, Kernel: kernelRelease(), Arch: runtime.GOARCH, PID: pid,
		Capabilities: []recording.Capability{},
	}}
	c.group = recording.KernelGroup
	c.kernel()
	c.group = recording.PrivilegeGroup
	c.privileges()
	if pid != 0 {
		c.group = recording.TargetGroup
		if err := c.target(ctx, pid); err != nil {
			return nil, err
		}
	}
	c.result.Traceable = len(c.result.Missing()) == 0
	return c.result, nil
}

// checkup is an examination as it goes on.
type checkup struct {
	result *recording.Checkup
	group  string
}

// has notes something that is there.
func (c *checkup) has(name, format string, arguments ...any) {
	c.note(recording.Capability{Name: name, Available: true, Detail: fmt.Sprintf(format, arguments...)})
}

// lacks notes something that is missing and costs a feature.
func (c *checkup) lacks(name, detail, next string) {
	c.note(recording.Capability{Name: name, Detail: detail, Next: next})
}

// needs notes something that no trace goes without. detail says what was found, or what is
// missing.
func (c *checkup) needs(name string, available bool, detail, next string) {
	capability := recording.Capability{Name: name, Available: available, Required: true, Detail: detail}
	if !available {
		capability.Next = next
	}
	c.note(capability)
}

func (c *checkup) note(capability recording.Capability) {
	capability.Group = c.group
	c.result.Capabilities = append(c.result.Capabilities, capability)
}

// kernelRelease is what uname -r prints.
func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}
