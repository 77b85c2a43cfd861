// SPDX-License-Identifier: Apache-2.0

#ifndef URLLOADING_C_COSTS_H
#define URLLOADING_C_COSTS_H

/// The calls of the allocator so far, by all threads of this process.
long cost_allocations(void);
/// The bytes that those calls asked for.
long cost_bytes(void);
/// The bytes that are allocated now.
long cost_held(void);

#endif
