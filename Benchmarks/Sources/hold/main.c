// SPDX-License-Identifier: Apache-2.0

/* The holding server: `GET /hold/N` is answered when N requests have arrived and a pause has passed
 * in which the clients come to rest; one of fifty `GET /faults` fails. The head and the body of `GET /apart` are
 * written apart. What is put to `/sink` is thrown away by the kernel and answered at its end.
 * Prints its port. One thread, level-triggered, HTTP/1.1 keep-alive. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { limit = 65536, body = 1024, pause_ms = 300 };

static char *partial[limit]; /* the head of a request so far, by descriptor */
static long long sinking[limit]; /* bytes of a body to come, by descriptor */
static int waiting[limit], waiting_count, timer = -1;
static char answer[256 + body];
static size_t answer_length, head_length;

static void answer_all(void) {
    for (int i = 0; i < waiting_count; i++)
        if (send(waiting[i], answer, answer_length, MSG_NOSIGNAL) < 0) perror("send");
    waiting_count = 0;
}

static int answer_sink(int fd) { return send(fd, answer, answer_length, MSG_NOSIGNAL) > 0; }

/* In two writes and by Nagle's algorithm, as many small servers do: the body waits until the head is acknowledged. */
static int answer_apart(int fd) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 0 }, sizeof(int));
    return send(fd, answer, head_length, MSG_NOSIGNAL) > 0
        && send(fd, answer + head_length, answer_length - head_length, MSG_NOSIGNAL) > 0;
}

/* Answers, or fails in one of five ways. Returns 0 if the connection is to be closed. */
static int answer_with_faults(int fd) {
    static unsigned long count;
    struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    static const char nonsense[] = "HTTP/9.9 what\r\n\r\n";
    if (++count % 50) return send(fd, answer, answer_length, MSG_NOSIGNAL) > 0;
    switch (count / 50 % 5) {
    case 0: return 0;                                                             /* closed without an answer */
    case 1: setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset); return 0; /* reset */
    case 2: send(fd, answer, answer_length / 2, MSG_NOSIGNAL); return 0;           /* closed in the body */
    case 3: send(fd, nonsense, sizeof nonsense - 1, MSG_NOSIGNAL); return 0;       /* not HTTP */
    default: return 1;                                                            /* never answered */
    }
}

/* Thrown away without a copy: what is measured is the client. */
static int sink(int fd) {
    ssize_t n = recv(fd, NULL, sinking[fd] < 1 << 22 ? sinking[fd] : 1 << 22, MSG_TRUNC);
    if (n <= 0) return 0;
    sinking[fd] -= n;
    return sinking[fd] > 0 || answer_sink(fd);
}

/* A request is complete when its empty line is there, or the body it announces. */
static int receive(int fd) {
    if (sinking[fd] > 0) return sink(fd);
    char *head = partial[fd];
    size_t have = strlen(head);
    ssize_t n = recv(fd, head + have, 4095 - have, 0);
    if (n <= 0) return 0;
    head[have + n] = 0;
    char *end = strstr(head, "\r\n\r\n");
    if (!end) return have + n < 4095;
    char *length = strcasestr(head, "\r\nContent-Length:");
    if (length && length < end) {
        sinking[fd] = atoll(length + 17) - (head + have + n - (end + 4));
        head[0] = 0;
        return sinking[fd] > 0 || answer_sink(fd);
    }
    long wanted = 1;
    if (strstr(head, "/faults")) {
        head[0] = 0;
        return answer_with_faults(fd);
    }
    if (strstr(head, "/apart")) {
        head[0] = 0;
        return answer_apart(fd);
    }
    char *path = strstr(head, "/hold/");
    if (path) wanted = atol(path + 6);
    head[0] = 0;
    waiting[waiting_count++] = fd;
    if (waiting_count < wanted) return 1;
    if (wanted == 1) { answer_all(); return 1; }
    struct itimerspec after = { .it_value.tv_nsec = pause_ms * 1000000L };
    timerfd_settime(timer, 0, &after, NULL);
    return 1;
}

static void forget(int fd) {
    for (int i = 0; i < waiting_count; i++)
        if (waiting[i] == fd) { waiting[i] = waiting[--waiting_count]; break; }
    free(partial[fd]);
    partial[fd] = NULL;
    sinking[fd] = 0;
    close(fd);
}

int main(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    answer_length = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", body);
    head_length = answer_length;
    memset(answer + answer_length, 'x', body);
    answer_length += body;

    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 4096)) { perror("listen"); return 1; }
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);

    int poll = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &(struct epoll_event){ .events = EPOLLIN, .data.fd = listener });
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &(struct epoll_event){ .events = EPOLLIN, .data.fd = timer });
    struct epoll_event events[256];
    for (;;) {
        int n = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == timer) {
                unsigned long long ticks;
                if (read(timer, &ticks, sizeof ticks) > 0) answer_all();
            } else if (fd == listener) {
                int accepted;
                while ((accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
                    if (accepted >= limit || !(partial[accepted] = calloc(1, 4096))) { close(accepted); continue; }
                    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
                    epoll_ctl(poll, EPOLL_CTL_ADD, accepted,
                              &(struct epoll_event){ .events = EPOLLIN, .data.fd = accepted });
                }
            } else if (!receive(fd)) {
                forget(fd);
            }
        }
    }
}
