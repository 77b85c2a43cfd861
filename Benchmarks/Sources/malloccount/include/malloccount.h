// SPDX-License-Identifier: Apache-2.0

#ifndef MALLOCCOUNT_H
#define MALLOCCOUNT_H

/* Preloaded, it counts every call that asks the C allocator for memory. */
long malloccount_read(void);

#endif
