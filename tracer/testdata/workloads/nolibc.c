/* A program without a C library: it has no allocator, and sleeps for ever. */
static long system_call(long number, long a, long b)
{
	long result;

#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(0), "r"(0) : "rcx", "r11", "memory");
#else
	register long n __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(n), "r"(x1) : "memory");
	result = x0;
#endif
	return result;
}

void _start(void)
{
	static const long hour[2] = { 3600, 0 };
#if defined(__x86_64__)
	const long nanosleep = 35;
#else
	const long nanosleep = 101;
#endif

	for (;;)
		system_call(nanosleep, (long)hour, 0);
}
