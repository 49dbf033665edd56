package recording

import "testing"

// TestDominant: the function that a person would name.
func TestDominant(t *testing.T) {
	stack := func(names ...string) Stack {
		var s Stack
		for i, name := range names {
			s = append(s, Frame{Function: name, Address: Address(len(name)*100 + i)})
		}
		return s
	}
	for name, c := range map[string]struct {
		sites []Site
		want  string
	}{
		"small copies are not the purpose": {[]Site{
			{AllocBytes: 60, Stack: stack("copy", "parse_envelope", "turn", "main")},
			{AllocBytes: 30, Stack: stack("copy", "parse_field", "parse_envelope", "turn", "main")},
			{AllocBytes: 10, Stack: stack("turn", "main")},
		}, "parse_envelope"},
		"a place of its own": {[]Site{
			{AllocBytes: 80, Stack: stack("fetch", "query", "main")},
			{AllocBytes: 20, Stack: stack("prepare", "query", "main")},
		}, "fetch"},
		"no part has half": {[]Site{
			{AllocBytes: 40, Stack: stack("a", "turn", "main")},
			{AllocBytes: 30, Stack: stack("b", "turn", "main")},
			{AllocBytes: 30, Stack: stack("c", "turn", "main")},
		}, "turn"},
		"an allocator behind stripped code": {[]Site{
			{AllocBytes: 45, Stack: stack("ngx_alloc", "", "read_body", "turn")},
			{AllocBytes: 45, Stack: stack("ngx_alloc", "", "write_body", "turn")},
			{AllocBytes: 10, Stack: stack("turn")},
		}, "turn"},
		"nothing known": {[]Site{{AllocBytes: 1}}, ""},
	} {
		if got, _ := Dominant(c.sites, func(s *Site) uint64 { return s.AllocBytes }); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
