package probe

import (
	"runtime"
	"testing"
)

func TestReturnsSafe(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only x86-64 returns from probes by a system call")
	}
	for _, c := range []struct {
		release string
		mode    int
		safe    bool
	}{
		{"6.1.0-50-cloud-amd64", 2, true},
		{"6.10.3", 2, true},
		{"6.11.0", 2, false},
		{"6.12.107+deb12", 2, false},
		{"6.12.107+deb12", 1, false},
		{"6.12.107+deb12", 0, true},
		{"6.13.1", 2, false},
		{"6.14.0", 2, true},
		{"6.18.44", 2, true},
		{"7.0.0", 2, true},
		{"unknown", 2, false},
		{"unknown", 0, true},
	} {
		if got := ReturnsSafe(c.release, c.mode); got != c.safe {
			t.Errorf("%s, mode %d: %v, want %v", c.release, c.mode, got, c.safe)
		}
	}
}
