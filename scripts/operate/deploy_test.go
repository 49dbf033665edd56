package operate

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"
)

// unit returns the lines of the service file that set a key.
func unit(t *testing.T, key string) []string {
	t.Helper()
	text, err := os.ReadFile("memtrace.service")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, match := range regexp.MustCompile(`(?m)^`+key+`=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		values = append(values, match[1])
	}
	if len(values) == 0 {
		t.Fatalf("the service file does not set %s", key)
	}
	return values
}

// TestUnit asks systemd whether it understands the service file, and how exposed it is.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile("memtrace.service")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "memtrace.service")
	// systemd looks for the program, which is not installed here.
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/memtrace", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=35", path).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// daemonSet is what the tests read of the manifest.
type daemonSet struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				HostPID    bool `yaml:"hostPID"`
				Containers []struct {
					Args            []string
					SecurityContext struct {
						AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
						Privileged               bool
						Capabilities             struct{ Add, Drop []string }
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

// TestDaemonSet: the manifest asks for what the service file asks for.
func TestDaemonSet(t *testing.T) {
	text, err := os.ReadFile("daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set daemonSet
	if err := yaml.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template.Spec
	if set.Kind != "DaemonSet" || !pod.HostPID || len(pod.Containers) != 1 {
		t.Fatalf("the manifest says %+v", set)
	}
	security := pod.Containers[0].SecurityContext
	var wanted []string
	for _, capability := range strings.Fields(unit(t, "AmbientCapabilities")[0]) {
		wanted = append(wanted, strings.TrimPrefix(capability, "CAP_"))
	}
	if !slices.Equal(security.Capabilities.Add, wanted) || !slices.Equal(security.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("the manifest adds %v and drops %v; the service file has %v", security.Capabilities.Add, security.Capabilities.Drop, wanted)
	}
	if security.Privileged || security.AllowPrivilegeEscalation {
		t.Error("the container is privileged")
	}
}

// TestServeWithTheUnitsCapabilities runs memtrace serve as an ordinary user with exactly the
// capabilities of the service file, and with each of them missing.
func TestServeWithTheUnitsCapabilities(t *testing.T) {
	directory, err := os.MkdirTemp("", "memtrace-operate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(directory, "memtrace")
	build := exec.Command("go", "build", "-o", program, "../../cmd/memtrace")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build memtrace: %v\n%s", err, out)
	}
	target := exec.Command("sleep", "600")
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Process.Kill(); target.Wait() })
	capabilities := strings.Fields(strings.ToLower(strings.ReplaceAll(unit(t, "AmbientCapabilities")[0], "CAP_", "+")))
	if !serves(t, program, target.Process.Pid, capabilities) {
		t.Errorf("memtrace serve does not trace with %v", capabilities)
	}
	for i := range capabilities {
		fewer := slices.Delete(slices.Clone(capabilities), i, i+1)
		if serves(t, program, target.Process.Pid, fewer) {
			t.Errorf("memtrace serve needs no %s, but the service file asks for it", capabilities[i])
		}
	}
}

// serves tells whether memtrace serve, run as nobody with the capabilities, traces a process;
// when it ends instead, it must say why with status 3.
func serves(t *testing.T, program string, pid int, capabilities []string) bool {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	set := "-all," + strings.Join(capabilities, ",")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
		"--inh-caps", set, "--ambient-caps", set, "--bounding-set", set,
		program, "serve", "--pid", strconv.Itoa(pid), "--listen", address)
	words, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	traced := false
	for lines := bufio.NewScanner(words); lines.Scan() && !traced; {
		t.Log(lines.Text())
		if strings.Contains(lines.Text(), "msg=traced") {
			traced = true
			if answer, err := http.Get("http://" + address + "/metrics"); err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("no metrics: %v", err)
			}
			cancel()
		}
		if strings.Contains(lines.Text(), "not traced") {
			cancel()
		}
	}
	command.Wait()
	return traced
}
