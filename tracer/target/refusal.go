package target

import "fmt"

// Refusal says that a process cannot be traced, and what to do. The command line turns it
// into exit status 3.
type Refusal struct {
	Reason string // what is missing, lower case
	Next   string // what to do about it
}

// Error joins the reason and the advice in one line.
func (r *Refusal) Error() string {
	if r.Next == "" {
		return r.Reason
	}
	return r.Reason + ": " + r.Next
}

// refuse makes a Refusal with a formatted reason.
func refuse(next, format string, arguments ...any) error {
	return &Refusal{Reason: fmt.Sprintf(format, arguments...), Next: next}
}
