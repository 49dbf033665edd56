package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/tracer/recording"
)

// tree writes a file tree for a test.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestVersion2(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/42/cgroup":      "0::/system.slice/scorer.service\n",
		"proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
		"sys/fs/cgroup/system.slice/scorer.service/memory.current":  "104857600\n",
		"sys/fs/cgroup/system.slice/scorer.service/memory.peak":     "209715200\n",
		"sys/fs/cgroup/system.slice/scorer.service/memory.high":     "max\n",
		"sys/fs/cgroup/system.slice/scorer.service/memory.max":      "1073741824\n",
		"sys/fs/cgroup/system.slice/scorer.service/memory.events":   "low 0\nhigh 3\nmax 7\noom 1\noom_kill 2\n",
		"sys/fs/cgroup/system.slice/scorer.service/memory.pressure": "some avg10=1.50 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=4\n",
		"sys/fs/cgroup/system.slice/scorer.service/cpu.pressure":    "some avg10=12.00 avg60=0.00 avg300=0.00 total=9\n",
	})
	g, err := find(filepath.Join(root, "proc"), root, 42)
	if err != nil {
		t.Fatal(err)
	}
	want := recording.Cgroup{CurrentBytes: 100 << 20, PeakBytes: 200 << 20, MaxBytes: 1 << 30, EventsHigh: 3, EventsMax: 7, EventsOOM: 2}
	if diff := cmp.Diff(want, g.Memory()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(recording.PSI{MemorySomeAvg10: 1.5, MemoryFullAvg10: 0.25, CPUSomeAvg10: 12}, g.Pressure()); diff != "" {
		t.Error(diff)
	}
}

func TestVersion1(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/42/cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/abc/inner\n0::/\n",
		// The mount shows the container's part of the hierarchy only.
		"proc/self/mountinfo": "31 23 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"32 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
		"sys/fs/cgroup/memory/inner/memory.usage_in_bytes":     "4096\n",
		"sys/fs/cgroup/memory/inner/memory.max_usage_in_bytes": "8192\n",
		"sys/fs/cgroup/memory/inner/memory.limit_in_bytes":     "9223372036854771712\n",
		"sys/fs/cgroup/memory/inner/memory.failcnt":            "5\n",
		"sys/fs/cgroup/memory/inner/memory.oom_control":        "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n",
		"sys/fs/cgroup/cpu/tasks":                              "",
	})
	g, err := find(filepath.Join(root, "proc"), root, 42)
	if err != nil {
		t.Fatal(err)
	}
	want := recording.Cgroup{CurrentBytes: 4096, PeakBytes: 8192, EventsMax: 5, EventsOOM: 6}
	if diff := cmp.Diff(want, g.Memory()); diff != "" {
		t.Error(diff)
	}
}

// TestOwnGroup compares the reading of this very process with the kernel's own list: the
// group in which we are holds us.
func TestOwnGroup(t *testing.T) {
	g, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{g.memory, g.unified} {
		if directory == "" {
			continue
		}
		pids, err := PIDs(directory)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, pid := range pids {
			found = found || pid == os.Getpid()
		}
		if !found {
			t.Errorf("%s does not hold process %d", directory, os.Getpid())
		}
	}
	if _, err := PIDs("/no/such/group"); err == nil {
		t.Error("a group that does not exist has processes")
	}
}
