// Package bpf is the kernel half: the BPF programs and the Go code that bpf2go makes of
// them. One family of probes is one .bpf.c and one header of the same stem; what families
// share stands in headers of its own.
package bpf

// The generated types are the shared layouts: nothing is mirrored by hand.
//
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem shared -type loss -type stack -type stack_flags -type thread -type course_part -type thread_counts -type target -type unwind_mapping -type unwind_rule Shared shared.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem alloc -type alloc_thread -type alloc_site -type alloc_share_key -type alloc_share -type alloc_lifetimes Alloc alloc.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem exec Exec exec.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem sched -type sched_sleep -type sched_thread Sched sched.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem fork Fork fork.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem lock -type futex_does -type lock_seen -type lock_key -type lock -type lock_thread -type lock_share_key -type lock_share -type lock_stack_key -type lock_stack -type lock_role -type lock_chain -type busy_period Lock lock.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem round -type round_event -type round_flags -type round_thread -type round_sums -type syscall_kind -type log_state Round round.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem mmap -type memory_call -type mmap_event -type mmap_thread Mmap mmap.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -output-stem arena -type arena_event -type arena_event_kind -type arena_thread Arena arena.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
