package target

import (
	"context"
	"strings"
	"testing"

	"memtrace/internal/workload"
)

// The linker is told the build id, so that the truth comes from outside.
func TestBuildID(t *testing.T) {
	for flag, want := range map[string]string{"-Wl,--build-id=0xc0ffee0123": "c0ffee0123", "-Wl,--build-id=none": ""} {
		ticker := workload.Start(t, workload.Build(t, "ticker.c", flag))
		ticker.Expect(t, "ready")
		opened, err := Open(context.Background(), ticker.PID())
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		if got := opened.BuildID(); !strings.EqualFold(got, want) {
			t.Errorf("%s: build id %q, want %q", flag, got, want)
		}
	}
}
