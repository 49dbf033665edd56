// A program of 32 MiB with 100 000 functions, of which naming a few must not read much.
// Function N is at big_functions + 16 * N.
	.text
	.globl	big_functions
	.set	number, 0
	.altmacro
	.macro	function n
	.globl	big_function_\n
	.type	big_function_\n, @function
big_function_\n:
	nop
	ret
	.balign	16
	.size	big_function_\n, 16
	.endm
	.balign	16
big_functions:
	.rept	100000
	function %number
	.set	number, number + 1
	.endr
	.globl	main
	.type	main, @function
main:
	ret
	.size	main, . - main
	.section .rodata
	.fill	32 << 20, 1, 7
	.section .note.GNU-stack, "", @progbits
