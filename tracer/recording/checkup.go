package recording

// CheckupSchema names the form of what memtrace doctor writes.
const CheckupSchema = "memtrace-doctor/1"

// Checkup is what a machine, and one process on it, allow: the answer of memtrace doctor.
type Checkup struct {
	Schema       string       `json:"schema"`
	Kernel       string       `json:"kernel"`
	Arch         string       `json:"arch"`
	PID          int          `json:"pid,omitempty"` // 0 when only the machine was looked at
	Traceable    bool         `json:"traceable"`     // nothing that is required is missing
	Capabilities []Capability `json:"capabilities"`
}

// Groups of capabilities, in the order in which they are listed.
const (
	KernelGroup    = "kernel"
	PrivilegeGroup = "privileges"
	TargetGroup    = "target"
)

// Capability is one thing that memtrace can use, or not.
type Capability struct {
	Group     string `json:"group"` // "kernel", "privileges" or "target"
	Name      string `json:"name"`
	Available bool   `json:"available"`
	// Required: without it nothing can be traced. What is not required costs a feature, which
	// Detail names.
	Required bool   `json:"required"`
	Detail   string `json:"detail"`         // what was found, or what its lack means
	Next     string `json:"next,omitempty"` // what to do about it
}

// Missing returns what is required and not available.
func (c *Checkup) Missing() []Capability {
	var missing []Capability
	for _, capability := range c.Capabilities {
		if capability.Required && !capability.Available {
			missing = append(missing, capability)
		}
	}
	return missing
}
