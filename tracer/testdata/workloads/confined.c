/*
 * A process that has confined itself: its seccomp filter kills it at every system call that
 * allocating, reading a line and printing one do not need. Prints "ready", then for each line
 * of input makes that many blocks of 4242 bytes, and prints "done".
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap),
		ALLOW(SYS_mprotect), ALLOW(SYS_madvise), ALLOW(SYS_getrandom), ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

static __attribute__((noinline)) void allocate(long calls)
{
	for (long i = 0; i < calls; i++) {
		void *volatile block = malloc(4242);

		free(block);
	}
}

int main(void)
{
	char line[64];
	ssize_t length;

	confine();
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while ((length = read(0, line, sizeof(line) - 1)) > 0) {
		line[length] = '\0';
		allocate(atol(line));
		if (write(1, "done\n", 5) != 5)
			return 1;
	}
	return 0;
}
