package lockcode

import (
	"testing"

	"memtrace/tracer/recording"
)

// stack makes one of function names, leaf first.
func stack(functions ...string) recording.Stack {
	var s recording.Stack
	for _, function := range functions {
		s = append(s, recording.Frame{Function: function, Module: "/usr/bin/server"})
	}
	return s
}

// TestOf reads stacks as they were seen in traces of programs of each kind.
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		stack        recording.Stack
		kind, caller string
	}{
		"mutex":              {stack("__lll_lock_wait", "__pthread_mutex_lock_full", "___pthread_mutex_lock", "take_job", "worker"), "mutex", "take_job"},
		"condition variable": {stack("__futex_abstimed_wait_common", "__pthread_cond_wait_common", "___pthread_cond_wait", "next_job"), "condvar", "next_job"},
		"its inner lock":     {stack("futex_wait", "__condvar_quiesce_and_switch_g1", "pthread_cond_signal", "ingest"), "condvar", "ingest"},
		"reader":             {stack("__futex_abstimed_wait64", "__pthread_rwlock_rdlock_full64", "___pthread_rwlock_rdlock", "lookup"), "rwlock", "lookup"},
		"semaphore":          {stack("do_futex_wait", "__new_sem_wait_slow64", "sem_wait", "consume"), "semaphore", "consume"},
		"join":               {stack("__futex_abstimed_wait_common64", "__pthread_clockjoin_ex", "main"), "join", "main"},
		"std::mutex":         {stack("__lll_lock_wait", "___pthread_mutex_lock", "std::mutex::lock()", "Cache::get(int)"), "mutex", "Cache::get(int)"},
		"Rust mutex":         {stack("syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended", "server::handle"), "mutex", "server::handle"},
		"parking_lot":        {stack("syscall", "<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock", "server::handle"), "mutex", "server::handle"},
		"tokio":              {stack("syscall", "std::sys::sync::condvar::futex::Condvar::wait", "tokio::runtime::park::Inner::park", "server::main"), "condvar", "server::main"},
		"arena":              {stack("__lll_lock_wait_private", "malloc", "parse"), "allocator", "parse"},
		"OpenMP":             {stack("gomp_mutex_lock_slow", "GOMP_critical_start", "sum"), "mutex", "sum"},
		"own code":           {stack("lock_of_our_own", "main"), "", "lock_of_our_own"},
	} {
		facts := Of(c.stack)
		if facts.Kind != c.kind || facts.Caller.Function != c.caller {
			t.Errorf("%s: %q asked for by %q, want %q by %q", name, facts.Kind, facts.Caller.Function, c.kind, c.caller)
		}
	}
}

// TestOfStripped: functions of the C library that have no names belong to the lock.
func TestOfStripped(t *testing.T) {
	s := recording.Stack{
		{Module: "/usr/lib/x86_64-linux-gnu/libc.so.6", Offset: 0x85000},
		{Function: "pthread_mutex_lock", Module: "/usr/lib/x86_64-linux-gnu/libc.so.6"},
		{Module: "/usr/bin/server", Offset: 0x1234},
	}
	facts := Of(s)
	if facts.Kind != "mutex" || !facts.Found || facts.Caller.Offset != 0x1234 {
		t.Errorf("it says %+v", facts)
	}
	if empty := Of(nil); empty.Found || empty.Kind != "" {
		t.Errorf("of no stack it says %+v", empty)
	}
}

func TestIsAllocator(t *testing.T) {
	for name, is := range map[string]bool{
		"malloc": true, "__libc_calloc": true, "__GI___libc_free": true, "_int_free": true, "sysmalloc": true,
		"malloc_usage_report": false, "freeze": false, "": false,
	} {
		if IsAllocator(name) != is {
			t.Errorf("%q: %v", name, !is)
		}
	}
}
