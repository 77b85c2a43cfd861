// SPDX-License-Identifier: Apache-2.0

#ifndef CPOLL_H
#define CPOLL_H

#include <stdint.h>

/* epoll and eventfd, which Swift's Glibc module lacks. */

int cpoll_create(void);
/* Registers a socket for both directions, edge-triggered, under a key that is not 0. */
void cpoll_add(int poller, int descriptor, uint64_t key);
/* An event source whose key is 0; level-triggered. */
int cpoll_add_wake(int poller);
void cpoll_wake(int wake);
void cpoll_woken(int wake);
/* Writes the keys of the sockets that are ready; returns how many there are. */
int cpoll_wait(int poller, uint64_t *_Nonnull keys, int room, int milliseconds);

#endif
