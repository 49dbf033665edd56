package calibrate

import "debug/elf"

const machine = elf.EM_AARCH64

// siteInCode is where the probe goes: a nop, which the kernel emulates.
const siteInCode = 0x54

// code waits for a byte, calls the site callsInBurst times, answers with a byte.
var code = []uint32{
	0xd10203ff,                   // 00 sub sp, sp, #128
	0xd2800000,                   // 04 mov x0, #0
	0x910003e1,                   // mov x1, sp
	0xd2800022,                   // mov x2, #1
	0xd28007e8,                   // mov x8, #63: read
	0xd4000001,                   // svc #0
	0xf100041f,                   // cmp x0, #1
	0x54000161,                   // b.ne 48
	0x52800013 | callsInBurst<<5, // mov w19, #callsInBurst
	0x9400000c,                   // 24 bl 54
	0x71000673,                   // subs w19, w19, #1
	0x54ffffc1,                   // b.ne 24
	0xd2800020,                   // mov x0, #1
	0x910003e1,                   // mov x1, sp
	0xd2800022,                   // mov x2, #1
	0xd2800808,                   // mov x8, #64: write
	0xd4000001,                   // svc #0
	0x17fffff0,                   // b 04
	0xd2800000,                   // 48 mov x0, #0
	0xd2800bc8,                   // mov x8, #94: exit_group
	0xd4000001,                   // svc #0
	0xd503201f,                   // 54 nop
	0xd65f03c0,                   // ret
}
