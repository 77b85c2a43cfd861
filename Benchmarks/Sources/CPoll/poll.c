// SPDX-License-Identifier: Apache-2.0

#include "CPoll.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

int cpoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

void cpoll_add(int poller, int descriptor, uint64_t key) {
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u64 = key };
    epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
}

int cpoll_add_wake(int poller) {
    int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 0 };
    epoll_ctl(poller, EPOLL_CTL_ADD, wake, &event);
    return wake;
}

void cpoll_wake(int wake) { eventfd_write(wake, 1); }

void cpoll_woken(int wake) {
    eventfd_t value;
    eventfd_read(wake, &value);
}

int cpoll_wait(int poller, uint64_t *keys, int room, int milliseconds) {
    struct epoll_event events[256];
    int count = epoll_wait(poller, events, room < 256 ? room : 256, milliseconds);
    for (int i = 0; i < count; i++) keys[i] = events[i].data.u64;
    return count;
}
