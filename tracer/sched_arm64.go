package tracer

// oldIdleCalls are the idle waits that newer architectures do without.
var oldIdleCalls []int
