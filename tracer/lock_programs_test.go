package tracer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"memtrace/internal/workload"
)

// TestPythonLock: threads that compute in one Python process wait for its interpreter's lock.
func TestPythonLock(t *testing.T) {
	const script = `
import _thread, time
def count():
    n = 0
    while True:
        n += 1
for _ in range(4):
    _thread.start_new_thread(count, ())
print("ready", flush=True)
time.sleep(1000)
`
	p := workload.StartCommand(t, exec.Command("/usr/bin/python3", "-c", script))
	p.Expect(t, "ready")
	expectVerdict(t, p.PID(), []string{"lock-contention"}, []string{"lock-convoy", "cpu-contention"})
}

// TestRedisVerdicts: a server that works in one thread is blamed for nothing. Where the
// machine has too few processors for it, that may be told.
func TestRedisVerdicts(t *testing.T) {
	directory := t.TempDir()
	socket := filepath.Join(directory, "redis.sock")
	p := workload.StartCommand(t, exec.Command("/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", directory))
	workload.Eventually(t, "redis answers", func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	expectSilence(t, p.PID(), 2, verdictTrace)
	load := exec.Command("/usr/bin/redis-benchmark", "-s", socket, "-n", "1000000000", "-c", "20", "-t", "set", "-q")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		load.Process.Kill()
		load.Wait()
	}()
	expectSilence(t, p.PID(), 2, verdictTrace, lockKinds...)
}

const nginxConfiguration = `
daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log /dev/null;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen unix:%[1]s/nginx.sock;
		return 200 "hello";
	}
}
`

// TestNginxVerdicts: the same for nginx.
func TestNginxVerdicts(t *testing.T) {
	directory := t.TempDir()
	configuration := filepath.Join(directory, "nginx.conf")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, nginxConfiguration, directory), 0o600); err != nil {
		t.Fatal(err)
	}
	p := workload.StartCommand(t, exec.Command("/usr/sbin/nginx", "-c", configuration, "-e", "/dev/null"))
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(directory, "nginx.sock"))
	}}, Timeout: time.Minute}
	ask := func() bool {
		response, err := client.Get("http://nginx/")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}
	workload.Eventually(t, "nginx answers", ask)
	expectSilence(t, p.PID(), 2, verdictTrace)
	loaded, end := context.WithCancel(t.Context())
	defer end()
	for range 4 {
		go func() {
			for loaded.Err() == nil {
				ask()
			}
		}()
	}
	expectSilence(t, p.PID(), 2, verdictTrace, lockKinds...)
}
