package symbolize

import "testing"

// demangled are names as compilers write them and as programmers know them.
var demangled = map[string]string{
	"main":                     "main",
	"":                         "",
	"_init":                    "_init",
	"_Z":                       "_Z",
	"_ZN":                      "_ZN",
	"_start":                   "_start",
	"_ZdlPv":                   "operator delete",
	"_Znwm":                    "operator new",
	"a.b.c":                    "a.b.c",
	"score.cold":               "score",
	"score.part.0.constprop.1": "score",
	"score.isra.0":             "score",
	"parse.llvm.1234567890":    "parse",
	"lock.lto_priv.0":          "lock",
	"main.partition":           "main.partition",
	"runtime.mallocgc":         "runtime.mallocgc",
	"_ZN7scoring6ParserIlE5parseERKSt6vectorIlSaIlEE":                                       "scoring::Parser<long>::parse",
	"_ZN7scoringL10take_stackIlEEvT_.isra.0":                                                "scoring::take_stack<long>",
	"_ZNSt6vectorIiSaIiEE9push_backEOi":                                                     "std::vector<int, std::allocator<int> >::push_back",
	"_ZZ4mainENKUlvE_clEv":                                                                  "main::{lambda()#1}::operator()",
	"_ZN12_GLOBAL__N_14pollEv":                                                              "(anonymous namespace)::poll",
	"_ZN6scorer4main17h1a2b3c4d5e6f7a8bE":                                                   "scorer::main",
	"_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE":                            "core::ops::function::FnOnce::call_once",
	"_ZN6scorer4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE":                     "scorer::main::{{closure}}",
	"_ZN72_$LT$scorer..Scorer$u20$as$u20$core..iter..Iterator$GT$4next17h0123456789abcdefE": "",
	"_RNvCs1234_7mycrate3foo":                                                               "mycrate::foo",
	"_RNvMCs1_6scorerNtB2_6Scorer4poll":                                                     "<scorer::Scorer>::poll",
	"_RNCNvCs1_6scorer4main0B3_":                                                            "scorer::main::{closure#0}",
	"_RINvCs1_6scorer5parselEB2_":                                                           "scorer::parse::<i32>",
	"_RNvXCs1_6scorerNtB2_6ScorerNtNtNtCs2_4core4iter8Iterator4next":                        "",
}

func TestDemangle(t *testing.T) {
	for name, want := range demangled {
		have := Demangle(name)
		if want == "" && name != "" {
			continue // only that it ends; the fuzzer starts from it
		}
		if have != want {
			t.Errorf("%q is %q, want %q", name, have, want)
		}
	}
}
