package target

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/internal/workload"
)

func TestRefusesWhatIsNoProcess(t *testing.T) {
	refused(t, 0, "no process id")
	refused(t, -5, "no process id")
	refused(t, 1<<22+1, "no process")
	refused(t, 2, "kernel thread")
}

func TestRefusesZombie(t *testing.T) {
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Wait()
	pid := command.Process.Pid
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		if stat, err := parseStat(text); err == nil && stat.state == 'Z' {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("true does not end")
		}
	}
	refused(t, pid, "zombie")
}

func TestRefusesThread(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if tid, _ := strconv.Atoi(task.Name()); tid != os.Getpid() {
			refused(t, tid, "thread of process", "--pid "+strconv.Itoa(os.Getpid()))
			return
		}
	}
	t.Fatal("this process has one thread only")
}

func TestRefusesGoProgram(t *testing.T) {
	directory := t.TempDir()
	source := filepath.Join(directory, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"time\"\n\nfunc main() {\n\tprintln(\"ready\")\n\ttime.Sleep(time.Hour)\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(directory, "program")
	for name, flags := range map[string][]string{"plain": nil, "stripped": {"-ldflags=-s -w"}} {
		t.Run(name, func(t *testing.T) {
			build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", program, source)...)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			refused(t, start(t, exec.Command(program)), "Go program", "pprof")
		})
	}
}

func TestRefusesUnknownAllocator(t *testing.T) {
	library := workload.Build(t, "bump.c", "-shared", "-fPIC")
	process := workload.StartCommand(t, withEnvironment(exec.Command(workload.Build(t, "calls.c")), "LD_PRELOAD="+library))
	process.Expect(t, "ready")
	refused(t, process.PID(), "unknown malloc", library)
}

func TestRefusesStrippedStaticProgram(t *testing.T) {
	process := workload.Start(t, workload.Build(t, "calls.c", "-static", "-s"))
	process.Expect(t, "ready")
	refused(t, process.PID(), "statically linked and stripped")
}

func TestRefusesSanitizer(t *testing.T) {
	process := workload.Start(t, workload.Build(t, "calls.c", "-fsanitize=address"))
	process.Expect(t, "ready")
	refused(t, process.PID(), "AddressSanitizer")
}

func TestRefuses32BitProgram(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program is x86 code")
	}
	directory := t.TempDir()
	source, object, program := filepath.Join(directory, "pause.s"), filepath.Join(directory, "pause.o"), filepath.Join(directory, "pause")
	code := ".globl _start\n_start: mov $29, %eax\nint $0x80\njmp _start\n" // pause(2)
	if err := os.WriteFile(source, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][]string{{"as", "--32", "-o", object, source}, {"ld", "-m", "elf_i386", "-o", program, object}} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step, err, out)
		}
	}
	refused(t, start(t, exec.Command(program)), "32-bit")
}

// asNobody names the environment variable under which this test binary runs as another user.
const asNobody = "MEMTRACE_TEST_AS_NOBODY"

func TestRefusesWithoutPrivilege(t *testing.T) {
	if pid, err := strconv.Atoi(os.Getenv(asNobody)); err == nil {
		refused(t, pid, "permission", "root")
		return
	}
	pid := start(t, exec.Command("sleep", "600"))
	program := filepath.Join(t.TempDir(), "test")
	copyFile(t, "/proc/self/exe", program)
	for dir := filepath.Dir(program); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	again := exec.Command(program, "-test.run=^TestRefusesWithoutPrivilege$")
	again.Env = append(os.Environ(), asNobody+"="+strconv.Itoa(pid))
	again.Dir = "/"
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}
