// Package lockcode knows the functions that locks are made of: by the stack of a waiter it
// tells what kind of lock is waited for, and who asked for it. It is pure.
package lockcode

import (
	"path"
	"strings"

	"memtrace/tracer/recording"
)

// rule says what a function tells of a lock.
type rule struct {
	prefix string
	kind   string // "" = it belongs to a lock, but not only to one kind
}

// rules are the beginnings of functions' names, the most telling first: names of the C
// library and its copies, of C++, Rust, Go, OpenMP and abseil. A function that none fits is
// the lock's user.
var rules = []rule{
	{"pthread_mutex_", "mutex"}, {"__pthread_mutex_", "mutex"}, {"___pthread_mutex_", "mutex"}, {"__GI___pthread_mutex_", "mutex"}, {"mtx_", "mutex"},
	{"lll_", ""}, {"__lll_lock", ""}, {"__lll_trylock", ""}, {"__lll_unlock", ""}, {"__lll_timedlock", ""}, {"__old_", ""}, {"__GI_", ""},
	{"pthread_cond_", "condvar"}, {"__pthread_cond_", "condvar"}, {"___pthread_cond_", "condvar"}, {"__condvar_", "condvar"}, {"cnd_", "condvar"},
	{"pthread_rwlock_", "rwlock"}, {"__pthread_rwlock_", "rwlock"}, {"___pthread_rwlock_", "rwlock"},
	{"sem_", "semaphore"}, {"__new_sem_", "semaphore"}, {"__old_sem_", "semaphore"}, {"do_futex_wait", "semaphore"},
	{"pthread_join", "join"}, {"__pthread_join", "join"}, {"__pthread_clockjoin", "join"}, {"___pthread_join", "join"},
	{"pthread_timedjoin", "join"}, {"pthread_clockjoin", "join"}, {"__pthread_timedjoin", "join"}, {"thrd_join", "join"},
	{"pthread_barrier_", "parking"}, {"__pthread_barrier_", "parking"}, {"___pthread_barrier_", "parking"},
	{"pthread_once", "mutex"}, {"__pthread_once", "mutex"}, {"___pthread_once", "mutex"}, {"call_once", "mutex"},
	{"__cxa_guard_", "mutex"}, {"__futex_", ""}, {"futex_", ""}, {"syscall", ""}, {"__syscall_", ""}, {"__timedwait", ""}, {"__wait", ""},
	{"std::condition_variable", "condvar"}, {"std::_V2::condition_variable", "condvar"}, {"std::__condvar", "condvar"},
	{"std::mutex", "mutex"}, {"std::recursive_mutex", "mutex"}, {"std::timed_mutex", "mutex"}, {"std::shared_mutex", "rwlock"},
	{"std::__shared_mutex", "rwlock"}, {"std::lock_guard", ""}, {"std::unique_lock", ""}, {"std::scoped_lock", ""}, {"std::shared_lock", "rwlock"},
	{"std::__atomic_wait", "parking"}, {"std::__detail::", ""}, {"std::counting_semaphore", "semaphore"}, {"__gthread", ""}, {"__gnu_cxx::", ""},
	{"std::sys::sync::mutex", "mutex"}, {"std::sys::sync::condvar", "condvar"}, {"std::sys::sync::rwlock", "rwlock"},
	{"std::sys::sync::thread_parking", "parking"}, {"std::sys::sync::once", "mutex"}, {"std::sys::unix::locks::", ""}, {"std::sys::", ""},
	{"std::sys_common::", ""}, {"std::sync::mutex", "mutex"}, {"std::sync::poison::mutex", "mutex"}, {"std::sync::rwlock", "rwlock"},
	{"std::sync::poison::rwlock", "rwlock"}, {"std::sync::condvar", "condvar"}, {"std::sync::poison::condvar", "condvar"},
	{"std::sync::once", "mutex"}, {"std::sync::mpmc", "parking"}, {"std::sync::mpsc", "parking"}, {"std::thread::park", "parking"},
	{"std::thread::Thread::unpark", "parking"}, {"std::thread::JoinHandle", "join"}, {"std::thread::JoinInner", "join"},
	{"parking_lot::raw_mutex", "mutex"}, {"parking_lot::raw_rwlock", "rwlock"}, {"parking_lot::condvar", "condvar"}, {"parking_lot::remutex", "mutex"},
	{"parking_lot", ""}, {"lock_api::rwlock", "rwlock"}, {"lock_api::mutex", "mutex"}, {"lock_api::", ""}, {"crossbeam_utils::sync::parker", "parking"},
	{"crossbeam_channel::", "parking"}, {"tokio::runtime::park", "parking"}, {"tokio::runtime::scheduler", "parking"}, {"tokio::park", "parking"},
	{"tokio::loom::", ""}, {"linux_futex", ""}, {"absl::Mutex", "mutex"}, {"absl::CondVar", "condvar"}, {"absl::", ""},
	{"gomp_mutex_", "mutex"}, {"GOMP_critical", "mutex"}, {"omp_set_lock", "mutex"}, {"gomp_sem_", "semaphore"}, {"gomp_", "parking"},
	{"GOMP_", "parking"}, {"__kmp_", "parking"}, {"__kmpc_", "parking"}, {"runtime.lock", "mutex"}, {"runtime.unlock", "mutex"},
	{"runtime.note", "parking"}, {"runtime.stopm", "parking"}, {"runtime.futex", ""}, {"take_gil", "mutex"}, {"drop_gil", "mutex"},
	{"PyThread_", ""}, {"PyCOND_", ""}, {"PyMUTEX_", ""}, {"_PyMutex_", "mutex"}, {"_PyParkingLot_", "parking"},
}

// interpreterLocks are locks known by the function that takes them, whatever they are made of.
var interpreterLocks = map[string]string{
	"take_gil": "Python's global interpreter lock", "drop_gil": "Python's global interpreter lock",
}

// allocatorEntries are functions of an allocator that take its own locks.
var allocatorEntries = []string{
	"malloc", "calloc", "realloc", "free", "memalign", "posix_memalign", "aligned_alloc", "valloc", "pvalloc", "mallinfo", "malloc_trim",
	"malloc_info", "mallopt", "reallocarray", "malloc_stats", "cfree", "_int_malloc", "_int_free", "_int_realloc", "arena_get", "sysmalloc", "tcache_init",
}

// Facts is what a stack tells of the lock that it waits for, or wakes others on.
type Facts struct {
	Kind string // "" = the stack does not tell
	Name string // the name of a lock that is known by its function, else ""
	// Caller is the first frame outside the lock's own code; false when there is none.
	Caller recording.Frame
	Found  bool
}

// depth bounds how far from the leaf a lock's code is looked for.
const depth = 24

// Of reads a stack, leaf first.
func Of(stack recording.Stack) Facts {
	var facts Facts
	for i, frame := range stack {
		if i == depth {
			break
		}
		name := plain(frame.Function)
		if known, is := interpreterLocks[name]; is {
			facts.Kind, facts.Name = "mutex", known
			continue
		}
		kind, own := ofFunction(name)
		if name == "" {
			own = inCLibrary(frame)
		}
		if IsAllocator(name) && facts.Kind == "" {
			facts.Kind = "allocator"
			own = true
		}
		if !own {
			facts.Caller, facts.Found = frame, true
			return facts
		}
		if facts.Kind == "" {
			facts.Kind = kind
		}
	}
	return facts
}

// ofFunction tells whether a function belongs to a lock, and to which kind.
func ofFunction(name string) (kind string, own bool) {
	if name == "" {
		return "", false
	}
	for _, rule := range rules {
		if strings.HasPrefix(name, rule.prefix) {
			return rule.kind, true
		}
	}
	return "", false
}

// plain strips what stands before the path in demangled names: "<std::sync::Mutex<T>>::lock",
// "<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock".
func plain(name string) string { return strings.TrimLeft(name, "<&") }

// IsAllocator tells whether a function is an allocator's entry.
func IsAllocator(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "__GI_"), "__libc_")
	for _, entry := range allocatorEntries {
		if name == entry || strings.HasPrefix(name, entry+".") {
			return true
		}
	}
	return false
}

// inCLibrary tells whether a frame without a name lies in the C library, whose inner
// functions distributions strip.
func inCLibrary(frame recording.Frame) bool {
	base := path.Base(frame.Module)
	for _, library := range []string{"libc.so", "libc-2", "libpthread", "ld-linux", "ld-musl", "[vdso]", "libstdc++", "libgomp"} {
		if strings.HasPrefix(base, library) {
			return true
		}
	}
	return false
}
