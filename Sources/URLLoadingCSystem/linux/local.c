// SPDX-License-Identifier: Apache-2.0

#ifdef __linux__ // elsewhere URLLoadingPlatform has the error

// Local sockets that carry credentials and open files, and the start of programs.
#define _GNU_SOURCE
#include "URLLoadingCSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline int result(int value) { return value < 0 ? -errno : value; }

int csys_peer_credentials(int descriptor, csys_peer *peer) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) return -errno;
    peer->process = credentials.pid;
    peer->user = credentials.uid;
    return 0;
}

// Room for more than is allowed: a peer that sends too many must be noticed, and what came be closed.
enum { ROOM = 16 };
typedef union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * ROOM)];
} control_room;

ssize_t csys_send_descriptors(int descriptor, const void *bytes, size_t count, const int *files, int file_count) {
    if (file_count < 0 || file_count > CSYS_MOST_DESCRIPTORS) return -EINVAL;
    struct iovec piece = {(void *)bytes, count};
    control_room room;
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (file_count > 0) {
        memset(&room, 0, sizeof room);
        message.msg_control = room.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * file_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * file_count);
        memcpy(CMSG_DATA(header), files, sizeof(int) * file_count);
    }
    ssize_t moved;
    do moved = sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT); while (moved < 0 && errno == EINTR);
    return moved < 0 ? -errno : moved;
}

ssize_t csys_receive_descriptors(int descriptor, void *bytes, size_t count, int *files, int *file_count) {
    *file_count = 0;
    struct iovec piece = {bytes, count};
    control_room room;
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
    ssize_t moved;
    do moved = recvmsg(descriptor, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT); while (moved < 0 && errno == EINTR);
    if (moved < 0) return -errno;
    int found = 0, all[ROOM];
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int here = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int i = 0; i < here && found < ROOM; i++)
            memcpy(&all[found++], CMSG_DATA(header) + sizeof(int) * i, sizeof(int));
    }
    if (found > CSYS_MOST_DESCRIPTORS || message.msg_flags & MSG_CTRUNC) {
        for (int i = 0; i < found; i++) close(all[i]);
        return -EMSGSIZE;
    }
    memcpy(files, all, sizeof(int) * found);
    *file_count = found;
    return moved;
}

int csys_send_datagram(const struct sockaddr *address, socklen_t length, const char *text) {
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    ssize_t moved = sendto(descriptor, text, strlen(text), MSG_NOSIGNAL, address, length);
    int outcome = moved < 0 ? -errno : 0;
    close(descriptor);
    return outcome;
}

int csys_adopt(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
    return result(fcntl(descriptor, F_SETFD, FD_CLOEXEC));
}

void csys_close_from(int first) { closefrom(first); }

static int add_files(posix_spawn_file_actions_t *actions, const csys_program *program, const int *moved) {
    int error = 0;
    for (int i = 0; i < program->file_count && !error; i++)
        error = posix_spawn_file_actions_adddup2(actions, moved[i], i);
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(actions, program->file_count);
    if (!error && program->folder) error = posix_spawn_file_actions_addchdir_np(actions, program->folder);
    return error;
}

static int start(const csys_program *program, const int *moved) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (program->leads_session) flags |= POSIX_SPAWN_SETSID;
    posix_spawnattr_setflags(&attributes, flags);
    int error = add_files(&actions, program, moved);
    pid_t process = 0;
    if (!error)
        error = posix_spawnp(&process, program->path, &actions, &attributes, program->arguments, program->environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error ? -error : process;
}

int csys_program_start(const csys_program *program) {
    // Out of the way of the numbers they are to have.
    int moved[16], count = 0, error = program->file_count > 16 ? EINVAL : 0;
    for (; count < program->file_count && !error; count++) {
        moved[count] = fcntl(program->files[count], F_DUPFD_CLOEXEC, 16);
        if (moved[count] < 0) {
            error = errno;
            break;
        }
    }
    int outcome = error ? -error : start(program, moved);
    for (int i = 0; i < count; i++) close(moved[i]);
    return outcome;
}

int csys_program_wait(int process) {
    int status = 0, ended;
    do ended = waitpid(process, &status, 0); while (ended < 0 && errno == EINTR);
    if (ended < 0) return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int64_t nanoseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
int64_t csys_boot_time(void) { return nanoseconds(CLOCK_BOOTTIME); }
int64_t csys_wall_time(void) { return nanoseconds(CLOCK_REALTIME); }

#endif
