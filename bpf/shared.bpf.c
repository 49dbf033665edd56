//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The maps that all families share, and the layouts of what they hold. There is no program
 * here: the tracer makes the maps from this object and puts them into every family's.
 */
#include "course.h"
#include "stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
