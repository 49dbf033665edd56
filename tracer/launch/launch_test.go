package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/workload"
)

func TestHeldWithLibrariesMappedAndNothingRun(t *testing.T) {
	directory := t.TempDir()
	mark := filepath.Join(directory, "ran")
	c, err := Start(t.Context(), []string{"/bin/sh", "-c", "echo ran > " + mark + "; exit 7"})
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(maps, []byte("libc.so.6")) {
		t.Errorf("libc is not mapped while the command is held:\n%s", maps)
	}
	if bytes.Contains(maps, []byte("[heap]")) {
		t.Error("the command has a heap already")
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command ran before it was released")
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if status, err := c.Wait(); status != 7 || err != nil {
		t.Errorf("status %d, %v; want 7", status, err)
	}
	if content, err := os.ReadFile(mark); err != nil || strings.TrimSpace(string(content)) != "ran" {
		t.Errorf("the command did not run: %q, %v", content, err)
	}
}

func TestEndedBySignal(t *testing.T) {
	c, err := Start(t.Context(), []string{"sh", "-c", "kill -TERM $$"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if status, err := c.Wait(); status != 128+15 || err != nil {
		t.Errorf("status %d, %v; want 143", status, err)
	}
}

func TestStaticProgram(t *testing.T) {
	program := workload.Build(t, "exit3.c", "-static")
	c, err := Start(t.Context(), []string{program})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if status, err := c.Wait(); status != 3 || err != nil {
		t.Errorf("status %d, %v; want 3", status, err)
	}
}

func TestKilledWhileHeld(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	c, err := Start(t.Context(), []string{"touch", mark})
	if err != nil {
		t.Fatal(err)
	}
	c.Kill()
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command that was never released ran")
	}
}

func TestWrongCommands(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("just text"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, want string }{
		{"no-such-command-anywhere", "no such command"},
		{"/no/such/path", "no such command"},
		{"/etc/passwd", "permission denied"},
		{text, "exec format error"},
	} {
		_, err := Start(context.Background(), []string{c.command})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.command, err, c.want)
		}
		if errors.Is(err, ErrEnded) {
			t.Errorf("%s: taken for a command that ended", c.command)
		}
	}
}
