package main

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// received is one profile that a test's receiver was sent.
type received struct {
	path    string
	labels  map[string]string
	profile []byte
}

// receiver stands in for a profile store and hands over what it was sent.
func receiver(t *testing.T, read func(*http.Request) (received, error)) (address string, got <-chan received) {
	t.Helper()
	sent := make(chan received, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one, err := read(r)
		if err != nil {
			t.Errorf("what was sent to %s cannot be read: %v", r.URL, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		one.path = r.URL.Path
		select {
		case sent <- one:
		default:
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, sent
}

// readPyroscope takes apart what Pyroscope's /ingest is sent.
func readPyroscope(r *http.Request) (received, error) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return received{}, err
	}
	form, err := multipart.NewReader(r.Body, parameters["boundary"]).ReadForm(1 << 24)
	if err != nil {
		return received{}, err
	}
	file, err := form.File["profile"][0].Open()
	if err != nil {
		return received{}, err
	}
	defer file.Close()
	body, err := io.ReadAll(file)
	query := r.URL.Query()
	return received{profile: body, labels: map[string]string{
		"name": query.Get("name"), "from": query.Get("from"), "until": query.Get("until"), "format": query.Get("format"),
	}}, err
}

// readParca takes apart what Parca's gateway is sent.
func readParca(r *http.Request) (received, error) {
	var write struct {
		Series []struct {
			Labels struct {
				Labels []struct{ Name, Value string }
			}
			Samples []struct {
				RawProfile []byte `json:"rawProfile"`
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&write); err != nil {
		return received{}, err
	}
	one := received{labels: map[string]string{}, profile: write.Series[0].Samples[0].RawProfile}
	for _, label := range write.Series[0].Labels.Labels {
		one.labels[label.Name] = label.Value
	}
	return one, nil
}

// TestServePushes has stand-ins for Pyroscope and Parca check what serve sends them: their
// protocols, and a profile that names the function that allocates.
func TestServePushes(t *testing.T) {
	pid, _ := churn(t)
	pyroscope, fromPyroscope := receiver(t, readPyroscope)
	parca, fromParca := receiver(t, readParca)
	serve(t, "--pid", strconv.Itoa(pid), "--every", "1s", "--probes", "alloc", "--push-every", "1s",
		"--push-pyroscope", pyroscope, "--push-parca", parca)
	one := awaitProfile(t, fromPyroscope)
	if one.path != "/ingest" || one.labels["format"] != "pprof" || one.labels["name"] != "memtrace{comm=churn,pid="+strconv.Itoa(pid)+"}" {
		t.Errorf("Pyroscope was sent %s with %v", one.path, one.labels)
	}
	from, err := strconv.ParseInt(one.labels["from"], 10, 64)
	if err != nil || time.Since(time.Unix(from, 0)) > 10*time.Minute {
		t.Errorf("the profile begins at %q", one.labels["from"])
	}
	one = awaitProfile(t, fromParca)
	if one.path != "/profiles/writeraw" || one.labels["__name__"] != "memtrace" || one.labels["comm"] != "churn" {
		t.Errorf("Parca was sent %s with %v", one.path, one.labels)
	}
}

// awaitProfile waits for a profile with samples, whose allocations come from main.
func awaitProfile(t *testing.T, sent <-chan received) received {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case one := <-sent:
			parsed, err := profile.Parse(bytes.NewReader(one.profile))
			if err != nil {
				t.Fatalf("no profile: %v", err)
			}
			if len(parsed.Sample) == 0 {
				continue // sent before the first snapshot with allocations
			}
			if leaf := parsed.Sample[0].Location[0].Line[0].Function.Name; leaf != "main" {
				t.Errorf("the profile says that %s allocates", leaf)
			}
			return one
		case <-deadline:
			t.Fatal("no profile with samples within a minute")
		}
	}
}
