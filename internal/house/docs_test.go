package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist: where a document says which test shows something, there is
// such a test.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	list := exec.Command("git", "ls-files", "*_test.go")
	list.Dir = root(t)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	defined := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`)
	for name := range strings.FieldsSeq(string(out)) {
		source, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range function.FindAllSubmatch(source, -1) {
			defined[string(found[1])] = true
		}
	}
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	for _, document := range []string{"SECURITY.md", "docs/targets.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), document))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(text), -1) {
			if !defined[name] {
				t.Errorf("%s names %s, which is no test", document, name)
			}
		}
	}
}
