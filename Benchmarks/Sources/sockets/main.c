// SPDX-License-Identifier: Apache-2.0

/* The server of the WebSocket scenarios, which answers GET as well, so that both meet the same hand: GET /1k and /16m
 * are answered with so many bytes; a WebSocket of /echo says back each frame as it comes, one of /16m sends a message of
 * 16 MiB for each frame it gets. Prints its port. One thread, edge-triggered, no checks: what is measured is the
 * client. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { limit = 65536, room = 16384, kilo = 1024, large = 16 << 20 };

typedef struct {
    int is_socket, is_large;
    size_t have;             /* of input */
    size_t head, head_sent;  /* of output */
    size_t body, body_sent;  /* zeros behind it */
    unsigned char input[room], output[room];
} connection;

static connection *connections[limit];
static char *zeros;

/* Returns 0 when the peer has left. */
static int flush(int fd, connection *c) {
    while (c->head_sent < c->head || c->body_sent < c->body) {
        ssize_t n = c->head_sent < c->head
            ? send(fd, c->output + c->head_sent, c->head - c->head_sent, MSG_NOSIGNAL)
            : send(fd, zeros, c->body - c->body_sent, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN;
        if (c->head_sent < c->head) c->head_sent += n; else c->body_sent += n;
    }
    c->head = c->head_sent = c->body = c->body_sent = 0;
    return 1;
}

static int http(connection *c) {
    char *text = (char *)c->input, *end;
    text[c->have] = 0;
    if (!(end = strstr(text, "\r\n\r\n"))) return 0;
    char *key = strcasestr(text, "\r\nSec-WebSocket-Key:");
    c->is_large = !strncmp(text, "GET /16m", 8);
    if (key) {
        char joined[128], accept[64];
        unsigned char digest[SHA_DIGEST_LENGTH];
        key += 20;
        key += strspn(key, " ");
        int length = sprintf(joined, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", (int)strcspn(key, "\r "), key);
        SHA1((unsigned char *)joined, length, digest);
        EVP_EncodeBlock((unsigned char *)accept, digest, sizeof digest);
        c->is_socket = 1;
        c->head += sprintf((char *)c->output + c->head,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept);
    } else {
        size_t count = c->is_large ? large : kilo;
        c->head += sprintf((char *)c->output + c->head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", count);
        if (c->is_large) c->body = count;
        else { memcpy(c->output + c->head, zeros, count); c->head += count; }
    }
    size_t used = end + 4 - text;
    memmove(c->input, c->input + used, c->have -= used);
    return 1;
}

/* A whole frame of a client, which is masked; said back without its mask. */
static int frame(connection *c) {
    if (c->have < 6) return 0;
    size_t head = 6, length = c->input[1] & 0x7F;
    if (length == 126) { length = c->input[2] << 8 | c->input[3]; head = 8; }
    if (c->have < head + length || c->head + length + 10 > room) return 0;
    unsigned char *mask = c->input + head - 4, *payload = c->input + head, *out = c->output + c->head;
    int is_close = (c->input[0] & 0x0F) == 8;
    if (c->is_large && !is_close) {
        if (c->body) return 0;
        unsigned char start[10] = { 0x82, 127, 0, 0, 0, 0, large >> 24 & 0xFF, large >> 16 & 0xFF, large >> 8 & 0xFF, large & 0xFF };
        memcpy(out, start, sizeof start);
        c->head += sizeof start;
        c->body = large;
    } else {
        *out++ = c->input[0];
        if (length < 126) *out++ = length;
        else { *out++ = 126; *out++ = length >> 8; *out++ = length & 0xFF; }
        for (size_t i = 0; i < length; i++) out[i] = payload[i] ^ mask[i & 3];
        c->head = out + length - c->output;
    }
    memmove(c->input, c->input + head + length, c->have -= head + length);
    return 1;
}

static int serve(int fd, connection *c) {
    for (;;) {
        ssize_t n = recv(fd, c->input + c->have, room - 1 - c->have, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) return 0;
        if (n > 0) c->have += n;
        int moved;
        do {
            moved = !c->body && (c->is_socket ? frame(c) : http(c));
            if ((!moved || c->body || c->head > room / 2) && !flush(fd, c)) return 0;
        } while (moved);
        if (n < 0 || c->have == room - 1) return 1;
    }
}

static void forget(int fd) {
    free(connections[fd]);
    connections[fd] = NULL;
    close(fd);
}

int main(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    zeros = calloc(1, large);
    memset(zeros, 1, large);

    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 4096)) { perror("listen"); return 1; }
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);

    int poll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &(struct epoll_event){ .events = EPOLLIN, .data.fd = listener });
    struct epoll_event events[256];
    for (;;) {
        int n = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd, accepted;
            if (fd != listener) {
                if (!serve(fd, connections[fd])) forget(fd);
                continue;
            }
            while ((accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
                if (accepted >= limit || !(connections[accepted] = calloc(1, sizeof(connection)))) { close(accepted); continue; }
                setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
                epoll_ctl(poll, EPOLL_CTL_ADD, accepted,
                          &(struct epoll_event){ .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = accepted });
            }
        }
    }
}
