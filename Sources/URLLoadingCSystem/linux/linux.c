// SPDX-License-Identifier: Apache-2.0

#ifdef __linux__ // elsewhere URLLoadingPlatform has the error

#define _GNU_SOURCE
#include "URLLoadingCSystem.h"

#include <sys/uio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static inline int result(int value) { return value < 0 ? -errno : value; }

int csys_poll_create(void) { return result(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int poll, int operation, int descriptor, void *key, int interests) {
    struct epoll_event event = {.events = EPOLLET, .data.ptr = key};
    if (interests & CSYS_READABLE) event.events |= EPOLLIN | EPOLLRDHUP;
    if (interests & CSYS_WRITABLE) event.events |= EPOLLOUT;
    return result(epoll_ctl(poll, operation, descriptor, &event));
}

int csys_poll_add(int poll, int descriptor, void *key, int interests) {
    return control(poll, EPOLL_CTL_ADD, descriptor, key, interests);
}

int csys_poll_notify(int poll, int descriptor, void *key, int interests) {
    return control(poll, EPOLL_CTL_MOD, descriptor, key, interests);
}

int csys_wait_readable(int descriptor, int64_t nanoseconds) {
    struct pollfd one = {.fd = descriptor, .events = POLLIN | POLLRDHUP};
    struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    return result(ppoll(&one, 1, &t, NULL));
}

int csys_poll_wait(int poll, csys_event *events, int capacity, int64_t nanoseconds) {
    struct epoll_event ready[256];
    if (capacity > 256) capacity = 256;
    int count;
    if (nanoseconds <= 0) {
        count = epoll_wait(poll, ready, capacity, nanoseconds < 0 ? -1 : 0);
    } else {
        struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
        count = epoll_pwait2(poll, ready, capacity, &limit, NULL);
        // Kernels before 5.11 support milliseconds only, and so do sandboxes that block the newer call.
        if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
            int64_t milliseconds = nanoseconds / 1000000 + 1;
            count = epoll_wait(poll, ready, capacity, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds);
        }
    }
    if (count < 0) return -errno;
    for (int i = 0; i < count; i++) {
        uint32_t bits = 0;
        if (ready[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) bits |= CSYS_READABLE;
        if (ready[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) bits |= CSYS_WRITABLE;
        if (ready[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) bits |= CSYS_ENDED;
        events[i] = (csys_event){ready[i].data.ptr, bits};
    }
    return count;
}

int csys_wake_create(int poll) {
    int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0) return -errno;
    // Edge-triggered: each write is a separate event, so the counter is never read.
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) < 0) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    return descriptor;
}

void csys_wake(int descriptor) {
    uint64_t one = 1;
    ssize_t written = write(descriptor, &one, sizeof one);
    (void)written;
}

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
int64_t csys_now(void) { return now(CLOCK_MONOTONIC); }
int64_t csys_now_coarse(void) { return now(CLOCK_MONOTONIC_COARSE); }
int64_t csys_wall_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return t.tv_sec;
}

void csys_nap(int64_t nanoseconds) {
    struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

int csys_socket(int family) { return result(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

int csys_connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    return result(connect(descriptor, address, length));
}

int csys_listen(int descriptor, const struct sockaddr *address, socklen_t length, int backlog) {
    int on = 1;
    if (address->sa_family != AF_UNIX) setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(descriptor, address, length) < 0) return -errno;
    return result(listen(descriptor, backlog));
}

int csys_reserve(int descriptor, const struct sockaddr *address, socklen_t length) {
    int on = 1;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return result(bind(descriptor, address, length));
}

int csys_accept(int descriptor, struct sockaddr_storage *peer, socklen_t *length) {
    return result(accept4(descriptor, (struct sockaddr *)peer, length, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int csys_set_no_delay(int descriptor) {
    int on = 1;
    return result(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

int csys_acknowledge(int descriptor) {
    int on = 1;
    return result(setsockopt(descriptor, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on));
}

int csys_set_keep_alive(int descriptor, int seconds, int count) {
    int on = 1;
    if (setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) < 0
        || setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds) < 0
        || setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds) < 0)
        return -errno;
    return count > 0 ? result(setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count)) : 0;
}

int csys_set_receive_low_water(int descriptor, int count) {
    return result(setsockopt(descriptor, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof count));
}

int csys_set_traffic_class(int descriptor, int family, int code_point, int priority) {
    // The lower two bits are ECN (RFC 3168 section 5), which TCP manages.
    int octet = code_point << 2;
    int marked = family == AF_INET6 ? setsockopt(descriptor, IPPROTO_IPV6, IPV6_TCLASS, &octet, sizeof octet)
                                    : setsockopt(descriptor, IPPROTO_IP, IP_TOS, &octet, sizeof octet);
    // Set after the mark, because setting the mark also derives a priority from it, by an obsolete rule.
    int ordered = setsockopt(descriptor, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
    return result(marked < 0 ? marked : ordered);
}

int csys_bind_interface(int descriptor, const char *name) {
    return result(setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)));
}

int csys_bind_address(int descriptor, const struct sockaddr *address, socklen_t length) {
    // Otherwise a port is reserved before the destination is known, and ports run out.
    int on = 1;
    (void)setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return result(bind(descriptor, address, length));
}

int csys_interface_address(const char *name, int family, struct sockaddr_storage *address) {
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0) return -errno;
    int length = 0;
    for (struct ifaddrs *one = all; one && !length; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != family || strcmp(one->ifa_name, name)) continue;
        length = family == AF_INET ? (int)sizeof(struct sockaddr_in) : (int)sizeof(struct sockaddr_in6);
        memcpy(address, one->ifa_addr, (size_t)length);
    }
    freeifaddrs(all);
    return length;
}

int csys_address_families(_Bool *has_ipv4, _Bool *has_ipv6) {
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0) return -errno;
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr) continue;
        if (one->ifa_addr->sa_family == AF_INET)
            *has_ipv4 |= ((struct sockaddr_in *)one->ifa_addr)->sin_addr.s_addr != htonl(INADDR_LOOPBACK);
        if (one->ifa_addr->sa_family == AF_INET6)
            *has_ipv6 |= !IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr);
    }
    freeifaddrs(all);
    return 0;
}

const char *csys_environment(const char *name) { return getenv(name); }
void *csys_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void *csys_library_symbol(void *library, const char *name) { return dlsym(library, name); }
void csys_free(void *memory) { free(memory); }

int csys_set_reset_on_close(int descriptor) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    return result(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

int csys_shutdown_write(int descriptor) { return result(shutdown(descriptor, SHUT_WR)); }

int csys_local_address(int descriptor, struct sockaddr_storage *address, socklen_t *length) {
    return result(getsockname(descriptor, (struct sockaddr *)address, length));
}

int csys_address_towards(
    const struct sockaddr *peer, socklen_t size, struct sockaddr_storage *address, socklen_t *length) {
    int descriptor = result(socket(peer->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (descriptor < 0) return descriptor;
    // Connecting a datagram socket only looks up the route.
    int looked = result(connect(descriptor, peer, size));
    if (looked >= 0) looked = csys_local_address(descriptor, address, length);
    close(descriptor);
    return looked;
}

// On Linux the descriptor is closed even if close(2) fails with EINTR, so it is never retried.
int csys_close(int descriptor) { return result(close(descriptor)); }

ssize_t csys_send(int descriptor, const void *bytes, size_t count) {
    ssize_t moved;
    do moved = send(descriptor, bytes, count, MSG_NOSIGNAL); while (moved < 0 && errno == EINTR);
    return moved < 0 ? -errno : moved;
}

ssize_t csys_receive(int descriptor, void *bytes, size_t count) {
    ssize_t moved;
    do moved = recv(descriptor, bytes, count, 0); while (moved < 0 && errno == EINTR);
    return moved < 0 ? -errno : moved;
}

ssize_t csys_peek(int descriptor) {
    char byte;
    ssize_t moved;
    do moved = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT); while (moved < 0 && errno == EINTR);
    return moved < 0 ? -errno : moved;
}

typedef struct {
    void (*body)(void *);
    void *context;
    char name[16];
} thread_start;

static void *thread_main(void *argument) {
    thread_start start = *(thread_start *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), start.name);
    // Makes naps of a few microseconds precise: the default timer slack would add fifty.
    prctl(PR_SET_TIMERSLACK, 1000UL);
    start.body(start.context);
    return NULL;
}

int csys_thread_start(void (*body)(void *), void *context, const char *name) {
    thread_start *start = calloc(1, sizeof *start);
    if (!start) return ENOMEM;
    start->body = body;
    start->context = context;
    for (int i = 0; i < 15 && name[i]; i++) start->name[i] = name[i];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all);
    /* Signals of a fault stay deliverable: the kernel ends a process whose faulting thread blocks them without calling
       a handler, and the report of a crash (Swift's backtracer, Breakpad) would be missing. These threads run code of
       the program: its body streams, decisions and observers. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error) free(start);
    return error;
}

struct csys_semaphore { sem_t value; };

csys_semaphore *csys_semaphore_create(void) {
    csys_semaphore *semaphore = malloc(sizeof *semaphore);
    if (semaphore) sem_init(&semaphore->value, 0, 0);
    return semaphore;
}

void csys_semaphore_destroy(csys_semaphore *semaphore) {
    if (semaphore) sem_destroy(&semaphore->value);
    free(semaphore);
}

void csys_semaphore_raise(csys_semaphore *semaphore) {
    if (semaphore) sem_post(&semaphore->value);
}

_Bool csys_semaphore_wait(csys_semaphore *semaphore, int64_t nanoseconds) {
    if (!semaphore) return 0;
    int64_t end = now(CLOCK_MONOTONIC) + nanoseconds;
    struct timespec limit = {end / 1000000000, end % 1000000000};
    int result;
    do result = sem_clockwait(&semaphore->value, CLOCK_MONOTONIC, &limit); while (result < 0 && errno == EINTR);
    return result == 0;
}

static __thread const void *thread_mark;
void csys_set_thread_mark(const void *mark) { thread_mark = mark; }
const void *csys_thread_mark(void) { return thread_mark; }

int csys_error(void) { return errno; }
const char *csys_error_words(int number) {
    const char *words = strerrordesc_np(number);
    return words ? words : "unknown error";
}

// Weak: defined only where the sanitizer is linked.
extern void __tsan_acquire(void *address) __attribute__((weak));
void csys_sanitizer_acquire(const void *address) {
    if (__tsan_acquire) __tsan_acquire((void *)address);
}

int csys_file_open(const char *path, csys_file_info *info) {
    // Non-blocking: opening a pipe must not wait for a writer.
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return -errno;
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    info->size = status.st_size;
    info->is_regular = S_ISREG(status.st_mode);
    info->is_directory = S_ISDIR(status.st_mode);
    return descriptor;
}

void csys_file_leave_access_time(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0) fcntl(descriptor, F_SETFL, flags | O_NOATIME);
}

int64_t csys_file_size(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 ? (int64_t)status.st_size : -errno;
}

ssize_t csys_file_read_now(int descriptor, void *bytes, size_t count, int64_t offset) {
    struct iovec piece = {bytes, count};
    ssize_t moved = preadv2(descriptor, &piece, 1, offset, RWF_NOWAIT);
    if (moved >= 0) return moved;
    // File systems without the flag report that; their reads may block.
    return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR || errno == EINVAL ? -EAGAIN : -errno;
}

_Bool csys_file_is_near(int descriptor, int64_t offset, size_t count) {
    char byte;
    if (csys_file_read_now(descriptor, &byte, 1, offset) != 1) return 0;
    return count <= 1 || csys_file_read_now(descriptor, &byte, 1, offset + (int64_t)count - 1) == 1;
}

ssize_t csys_send_file(int descriptor, int file, int64_t offset, size_t count) {
    // sendfile has no MSG_NOSIGNAL, so SIGPIPE is blocked, and consumed if it was raised.
    sigset_t pipe_signal, before, pending;
    // One that is pending already belongs to other code; only a thread that has it blocked can have one.
    _Bool is_other = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    off_t from = offset;
    ssize_t moved;
    do moved = sendfile(descriptor, file, &from, count); while (moved < 0 && errno == EINTR);
    ssize_t outcome = moved < 0 ? -errno : moved;
    // A peer that leaves in the middle raises it too, with what was sent before as the result.
    if (moved < (ssize_t)count && !is_other) {
        struct timespec none = {0, 0};
        sigtimedwait(&pipe_signal, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return outcome;
}

ssize_t csys_file_read(int descriptor, void *bytes, size_t count, int64_t offset) {
    ssize_t moved;
    do {
        moved = pread(descriptor, bytes, count, offset);
    } while (moved < 0 && errno == EINTR);
    return moved >= 0 ? moved : -errno;
}

int csys_file_create(const char *path) {
    return result(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
}

int csys_file_reopen(const char *path, csys_file_info *info) {
    struct stat status;
    int descriptor;
    for (int tries = 0;; tries++) {
        descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (descriptor < 0) return -errno;
        if (fstat(descriptor, &status) < 0) {
            int error = errno;
            close(descriptor);
            return -error;
        }
        // The file was replaced since it was opened: open the new one.
        if (status.st_nlink > 0 || tries == 100) break;
        close(descriptor);
    }
    *info = (csys_file_info){status.st_size, S_ISREG(status.st_mode), S_ISDIR(status.st_mode)};
    // A file that another user owns or may have written to is not the one that this program left behind.
    info->is_own = status.st_uid == geteuid() && (status.st_mode & 0022) == 0 && status.st_nlink == 1;
    return descriptor;
}

ssize_t csys_file_write(int descriptor, const void *bytes, size_t count, int64_t offset) {
    ssize_t moved;
    do moved = pwrite(descriptor, bytes, count, offset); while (moved < 0 && errno == EINTR);
    return moved < 0 ? -errno : moved;
}

int csys_file_truncate(int descriptor, int64_t size) { return result(ftruncate(descriptor, size)); }
int csys_file_reserve(int descriptor, int64_t size) {
    int outcome;
    do outcome = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, size);
    while (outcome < 0 && errno == EINTR);
    return result(outcome);
}
int csys_file_punch(int descriptor, int64_t offset, int64_t count) {
    int outcome;
    do outcome = fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, count);
    while (outcome < 0 && errno == EINTR);
    return result(outcome);
}
int csys_file_claim(int descriptor) { return result(flock(descriptor, LOCK_EX | LOCK_NB)); }
int csys_file_unclaim(int descriptor) { return result(flock(descriptor, LOCK_UN)); }

// File systems whose files other machines may hold open: their locks may not be seen here.
static _Bool is_remote(int descriptor) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return 1;
    switch ((unsigned long)status.f_type) {
    case 0x6969:      // NFS
    case 0x517b:      // SMB
    case 0xfe534d42:  // SMB2
    case 0xff534d42:  // CIFS
    case 0x65735546:  // FUSE, which virtiofs is too
    case 0x01021997:  // 9P
    case 0x00c36400:  // Ceph
    case 0x5346414f:  // AFS
    case 0x47504653:  // GPFS
    case 0x0bd00bd0:  // Lustre
        return 1;
    default: return 0;
    }
}

static _Bool is_leftover(int descriptor, struct stat *status) {
    return fstat(descriptor, status) == 0 && S_ISREG(status->st_mode) && (status->st_mode & S_ISVTX)
        && status->st_uid == geteuid() && status->st_nlink == 1;
}

int csys_file_mark(int descriptor) {
    struct stat status;
    if (flock(descriptor, LOCK_EX | LOCK_NB) < 0 || fstat(descriptor, &status) < 0) return -errno;
    return result(fchmod(descriptor, (status.st_mode & 0777) | S_ISVTX));
}

int csys_file_unmark(int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) < 0) return -errno;
    return result(fchmod(descriptor, status.st_mode & 0777));
}

_Bool csys_file_remove_leftover(const char *path, int64_t seconds) {
    struct stat status;
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return 0;
    // The mark is removed under the lock, so it is looked at again.
    _Bool is_removed = is_leftover(descriptor, &status) && flock(descriptor, LOCK_EX | LOCK_NB) == 0
        && is_leftover(descriptor, &status) && (!is_remote(descriptor) || time(NULL) - status.st_mtime > seconds)
        && csys_file_is_same(path, descriptor) && unlink(path) == 0;
    close(descriptor);
    return is_removed;
}

int csys_file_sync(int descriptor) { return result(fsync(descriptor)); }
int csys_file_sync_content(int descriptor) { return result(fdatasync(descriptor)); }
int csys_file_mode(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 ? (int)(status.st_mode & 07777) : -errno;
}
int csys_file_set_mode(int descriptor, unsigned mode) { return result(fchmod(descriptor, mode)); }

// Reads the beginning of a small kernel file and appends a zero. Returns the length, or -errno.
static ssize_t read_beginning(const char *path, char *text, size_t size) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return -errno;
    ssize_t count = csys_file_read(descriptor, text, size - 1, 0);
    close(descriptor);
    if (count >= 0) text[count] = 0;
    return count;
}

int csys_file_mask(void) {
    char text[512];
    ssize_t count = read_beginning("/proc/self/status", text, sizeof text);
    if (count < 0) return (int)count;
    // The name before it cannot contain a line break, because the kernel escapes those.
    const char *line = strstr(text, "\nUmask:");
    return line ? (int)(strtoul(line + 7, NULL, 8) & 0777) : -ENOENT;
}

_Bool csys_boot_identity(char identity[37]) {
    return read_beginning("/proc/sys/kernel/random/boot_id", identity, 37) == 36;
}
int csys_file_rename(const char *from, const char *to) { return result(rename(from, to)); }

// An empty file takes the name, unless there is a file, and is replaced.
static int rename_over_empty(const char *from, const char *to) {
    struct stat made, named;
    int empty = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (empty < 0) return -errno;
    _Bool is_known = fstat(empty, &made) == 0;
    // Some of these file systems replace no open file.
    close(empty);
    int outcome = result(rename(from, to));
    if (outcome < 0 && is_known && lstat(to, &named) == 0 && named.st_size == 0 && named.st_dev == made.st_dev
        && named.st_ino == made.st_ino)
        unlink(to);
    return outcome;
}

int csys_file_rename_unless_exists(const char *from, const char *to, _Bool plainly) {
    if (plainly) return rename_over_empty(from, to);
    int outcome = result(renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
    if (outcome != -EINVAL && outcome != -ENOSYS) return outcome;
    // On file systems without the flag: link(2) does not replace an existing file either.
    outcome = result(link(from, to));
    if (outcome == 0) unlink(from);
    // Without links either.
    if (outcome == -EPERM || outcome == -EOPNOTSUPP || outcome == -ENOSYS) return rename_over_empty(from, to);
    return outcome;
}
int csys_file_remove(const char *path) { return result(unlink(path)); }
_Bool csys_folder_make(const char *path) {
    char copy[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof copy) return 0;
    memcpy(copy, path, length + 1);
    for (char *slash = copy + 1; *slash; slash++) {
        if (*slash != '/') continue;
        *slash = 0;
        mkdir(copy, 0700);
        *slash = '/';
    }
    mkdir(copy, 0700);
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

void csys_write_error(const char *line) {
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
}

void csys_append_line(const char *path, const char *line) {
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return;
    ssize_t written = write(descriptor, line, strlen(line));
    (void)written;
    close(descriptor);
}

typedef struct {
    pid_t process;
    void (*work)(void);
} exit_work;

static void run_at_exit(int status, void *context) {
    (void)status;
    exit_work *work = context;
    if (getpid() == work->process) work->work();
}

void csys_at_exit(void (*work)(void)) {
    exit_work *registered = malloc(sizeof *registered);
    if (!registered) return;
    *registered = (exit_work){.process = getpid(), .work = work};
    on_exit(run_at_exit, registered);
}

int csys_directory_sync(const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // A folder that may be changed but not read has no other way.
    if (descriptor < 0) return errno == EACCES ? 0 : -errno;
    int outcome = result(fsync(descriptor));
    close(descriptor);
    // Some file systems do not synchronise folders.
    return outcome == -EINVAL || outcome == -EBADF || outcome == -EOPNOTSUPP ? 0 : outcome;
}
int csys_directory_make(const char *path) { return result(mkdir(path, 0700)); }
int csys_path_look(const char *path, csys_path_info *info) {
    struct stat status;
    if (lstat(path, &status) < 0) return -errno;
    *info = (csys_path_info){
        status.st_dev, status.st_ino, S_ISREG(status.st_mode), S_ISDIR(status.st_mode),
        status.st_uid == geteuid() && (status.st_mode & 0022) == 0, status.st_mode & 0777,
    };
    return 0;
}
_Bool csys_file_is_same(const char *path, int descriptor) {
    struct stat named, open;
    return lstat(path, &named) == 0 && fstat(descriptor, &open) == 0 && named.st_dev == open.st_dev
        && named.st_ino == open.st_ino;
}

int csys_random(void *bytes, size_t count) {
    ssize_t got;
    do got = getrandom(bytes, count, 0); while (got < 0 && errno == EINTR);
    return got == (ssize_t)count ? 0 : got < 0 ? -errno : -EIO;
}

#endif
