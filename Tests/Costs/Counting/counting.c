// SPDX-License-Identifier: Apache-2.0

/* Replaces the allocator's entry points in the program that is linked with this file, and counts their calls. Needs
 * glibc. */

#include "URLLoadingCCosts.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long calls, bytes, held;

long cost_allocations(void) { return atomic_load(&calls); }
long cost_bytes(void) { return atomic_load(&bytes); }
long cost_held(void) { return atomic_load(&held); }

static void *counted(void *memory, size_t size) {
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, (long)size, memory_order_relaxed);
    atomic_fetch_add_explicit(&held, (long)malloc_usable_size(memory), memory_order_relaxed);
    return memory;
}

void free(void *memory) {
    atomic_fetch_sub_explicit(&held, (long)malloc_usable_size(memory), memory_order_relaxed);
    __libc_free(memory);
}

void *malloc(size_t size) { return counted(__libc_malloc(size), size); }
void *calloc(size_t n, size_t size) { return counted(__libc_calloc(n, size), n * size); }
void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size), size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

void *realloc(void *old, size_t size) {
    long before = (long)malloc_usable_size(old);
    void *memory = __libc_realloc(old, size);
    if (memory || size == 0) atomic_fetch_sub_explicit(&held, before, memory_order_relaxed);
    return counted(memory, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *memory = memalign(alignment, size);
    if (!memory) return ENOMEM;
    *result = memory;
    return 0;
}
