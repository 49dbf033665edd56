// Package browser opens pages in a headless Chromium, for tests: a script of the test drives
// the page as a user would and says what it sees.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// prelude is what a script of a test may call: check notes what is not so, key and type act
// as the user's hands.
const prelude = `
const complaints = [];
function check(holds, what) { if (!holds) complaints.push(what); }
function key(name, target) { (target || document.body).dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true })); }
function type(input, text) { input.focus(); input.value = text; input.dispatchEvent(new Event('input', { bubbles: true })); }
window.addEventListener('error', (event) => complaints.push('error: ' + event.message));
`

// verdict ends the script: it writes the complaints where the test finds them.
const verdict = `
const said = document.createElement('pre');
said.id = 'verdict-of-the-test';
said.textContent = JSON.stringify(complaints);
document.body.replaceChildren(said);
`

// Drive opens the page, a whole HTML document, from a file and in a window of that width,
// runs the script in it and fails the test with what the script complains about.
func Drive(t testing.TB, page string, width int, script string) {
	t.Helper()
	at := strings.LastIndex(page, "</body>")
	if at < 0 {
		t.Fatal("the page has no end")
	}
	run := "<script>" + prelude + "(async () => { try {" + script + "} catch (error) { complaints.push(String(error)); } " + verdict + "})();</script>"
	dom := dump(t, page[:at]+run+page[at:], width)
	match := regexp.MustCompile(`(?s)<pre id="verdict-of-the-test">(.*?)</pre>`).FindStringSubmatch(dom)
	if match == nil {
		t.Fatalf("the page did not come to the script's end; it holds %.2000s", dom)
	}
	var complaints []string
	if err := json.Unmarshal([]byte(html.UnescapeString(match[1])), &complaints); err != nil {
		t.Fatal(err)
	}
	for _, complaint := range complaints {
		t.Error(complaint)
	}
}

// dump returns the document as it is when the page's scripts have run.
func dump(t testing.TB, page string, width int) string {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: scripts/install-packages test installs it", err)
	}
	directory := t.TempDir()
	file := filepath.Join(directory, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var complaints strings.Builder
	command := exec.CommandContext(ctx, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(directory, "profile"), fmt.Sprintf("--window-size=%d,900", width),
		"--virtual-time-budget=10000", "--dump-dom", "file://"+file)
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	return string(out)
}
