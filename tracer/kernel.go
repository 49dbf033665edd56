package tracer

// kernel holds what the families share in the kernel: maps, and the loader of their objects.
type kernel struct{}
