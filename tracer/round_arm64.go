package tracer

import "debug/elf"

// machine is what the target's code is for.
const machine = elf.EM_AARCH64

// oldRoundCalls are the system calls that newer architectures do without.
var oldRoundCalls []roundCall
