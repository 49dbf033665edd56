package symbolize

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"memtrace/internal/workload"
)

// TestDebugInformationOfCompilers builds the program in the ways that compilers and linkers
// lay out debug information; names, inlined calls and lines are the same in all of them.
func TestDebugInformationOfCompilers(t *testing.T) {
	for _, flags := range [][]string{
		{"-gdwarf-5"},
		{"-gdwarf-4"},
		{"-gdwarf-3", "-gstrict-dwarf"},
		{"-gdwarf-2"},
		{"-gdwarf-5", "-gdwarf64"},
		{"-gdwarf-4", "-gdwarf64"},
		{"-gz=zlib"},
		{"-fno-pie", "-no-pie"},
		{"-static"},
		{"-ffunction-sections", "-Wl,--gc-sections"},
		{"-flto"},
		{"-freorder-blocks-and-partition", "-O3"},
		{"-fdebug-types-section"},
		{"-Wl,--build-id=none"},
	} {
		t.Run(flags[0]+flags[len(flags)-1], func(t *testing.T) {
			expectKnownStack(t, workload.Build(t, "frames.c", flags...))
		})
	}
}

// TestDebugInformationOfClang: clang writes no .debug_aranges, and DWARF 5 with its indexed
// addresses and strings.
func TestDebugInformationOfClang(t *testing.T) {
	clang := clangProgram()
	if clang == "" {
		t.Log("no clang here; the layouts of gcc are tested")
		return
	}
	for _, flags := range [][]string{{"-gdwarf-5"}, {"-gdwarf-4"}, {"-gdwarf-5", "-gdwarf-aranges"}} {
		t.Run(flags[0]+flags[len(flags)-1], func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "frames")
			arguments := append([]string{"-O2", "-pthread", "-o", program, filepath.Join(workload.Dir(), "frames.c")}, flags...)
			command(t, clang, arguments...)
			expectKnownStack(t, program)
		})
	}
}

func clangProgram() string {
	for _, name := range []string{"clang", "clang-19"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// expectKnownStack runs a build of frames.c and compares its stack with the source.
func expectKnownStack(t *testing.T, program string) {
	t.Helper()
	p, said := run(t, program)
	s := open(t, p.PID())
	frames := s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true})
	want := []string{"take_stack", "inlined_leaf*", "inlined_middle*", "outer_function", "exported_entry", "main"}
	if have := names(frames); !hasRun(have, want) {
		t.Fatalf("frames %q, want %q", have, want)
	}
	for function, key := range map[string]string{"inlined_leaf": "middle_line", "inlined_middle": "outer_line"} {
		line, _ := strconv.Atoi(said[key][0])
		f := named(t, frames, function)
		if f.Line != line || f.File != filepath.Join(workload.Dir(), "frames.c") {
			t.Errorf("%s at %s:%d, want frames.c:%d", function, f.File, f.Line, line)
		}
	}
}

// TestSplitDebugInformation: the functions lie in a .dwo file, which is not read; the lines
// are in the program.
func TestSplitDebugInformation(t *testing.T) {
	p, said := run(t, workload.Build(t, "frames.c", "-gsplit-dwarf"))
	s := open(t, p.PID())
	frames := s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true})
	if have, want := names(frames), []string{"take_stack", "outer_function", "exported_entry", "main"}; !hasRun(have, want) {
		t.Errorf("frames %q, want %q", have, want)
	}
	line, _ := strconv.Atoi(said["middle_line"][0])
	if f := named(t, frames, "outer_function"); f.Line != line {
		t.Errorf("outer_function at line %d, want %d", f.Line, line)
	}
}

const rustSource = `
use std::collections::HashMap;
use std::io::Read;
extern "C" { fn backtrace(buffer: *mut *mut u8, size: i32) -> i32; }
struct Scorer { seen: HashMap<String, u64> }
#[inline(never)]
fn take_stack() -> usize {
    let mut addresses = [std::ptr::null_mut(); 64];
    let n = unsafe { backtrace(addresses.as_mut_ptr(), 64) };
    for a in &addresses[..n as usize] { println!("frame {:p}", *a); }
    n as usize
}
impl Scorer {
    #[inline(always)]
    fn score(&mut self, name: &str) { let n = take_stack(); self.seen.insert(name.to_string(), n as u64); }
    #[inline(never)]
    fn poll(&mut self) { self.score("envelope"); self.seen.remove("none"); }
}
fn main() {
    let mut scorer = Scorer { seen: HashMap::new() };
    (0..1).for_each(|_| scorer.poll());
    println!("ready");
    let _ = std::io::stdin().read(&mut [0u8; 1]);
    println!("{}", scorer.seen.len());
}
`

// TestRust names a Rust program's functions where a compiler is there; TestDemangle holds
// the names that need none.
func TestRust(t *testing.T) {
	rustc, err := exec.LookPath("rustc")
	if err != nil {
		t.Log("no rustc here; TestDemangle covers the names")
		return
	}
	for _, flags := range [][]string{{"-O", "-C", "symbol-mangling-version=v0"}, {"-O", "-C", "lto=fat"}} {
		directory := t.TempDir()
		source, program := filepath.Join(directory, "scorer.rs"), filepath.Join(directory, "scorer")
		if err := os.WriteFile(source, []byte(rustSource), 0o600); err != nil {
			t.Fatal(err)
		}
		compile := exec.Command(rustc, append(flags, "-g", "-o", program, source)...)
		if out, err := compile.CombinedOutput(); err != nil {
			t.Logf("rustc %q does not work here: %v\n%s", flags, err, out)
			return
		}
		p, said := run(t, program)
		s := open(t, p.PID())
		have := names(s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true}))
		want := []string{"scorer::take_stack", "<scorer::Scorer>::score*", "<scorer::Scorer>::poll"}
		legacy := []string{"scorer::take_stack", "scorer::Scorer::score*", "scorer::Scorer::poll"}
		if !hasRun(have, want) && !hasRun(have, legacy) {
			t.Errorf("%q: frames %q, want %q", flags, have, want)
		}
	}
}
