package symbolize

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNamesThatDwzMovedAway: the inlined function is described in a file that several
// programs share. Where that is missing its name is, too, and nothing else.
func TestNamesThatDwzMovedAway(t *testing.T) {
	for _, name := range []string{"dwz4", "dwz5"} {
		for _, present := range []bool{true, false} {
			path := filepath.Join("testdata", "elf", name)
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			find := func(wanted string) *os.File {
				if !present || filepath.Base(wanted) != name+".alt" {
					return nil
				}
				alternate, err := os.Open(path + ".alt")
				if err != nil {
					t.Fatal(err)
				}
				return alternate
			}
			f, err := adopt(file, "/usr/lib/"+name, find)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			entry, ok := f.Symbols("first")["first"]
			if !ok {
				t.Fatal("no symbol first")
			}
			inlined, named := 0, 0
			for address := entry.Address; address < entry.Address+entry.Size; address++ {
				for _, p := range f.positions(address) {
					if p.inlined {
						inlined++
					}
					if p.inlined && p.function == "shared_inline_step" {
						named++
					}
					if p.inlined && p.line == 0 {
						t.Errorf("%s: no line at %#x", name, address)
					}
				}
			}
			if inlined == 0 || (present && named != inlined) || (!present && named != 0) {
				t.Errorf("%s, alternate file present %v: %d of %d inlined calls are named", name, present, named, inlined)
			}
		}
	}
}
