// SPDX-License-Identifier: Apache-2.0

// A proxy that opens tunnels (CONNECT, RFC 9110 9.3.6) and is no slower than the servers behind it: bytes are spliced
// from socket to socket and never seen. It listens on a free port of this machine, which it writes on standard output,
// and connects to this machine alone, whatever host it is asked for.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct way { int from, to; };

static void *pass(void *argument) {
    struct way way = *(struct way *)argument;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) == 0) {
        fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
        ssize_t count;
        while ((count = splice(way.from, NULL, pipes[1], NULL, 1 << 20, SPLICE_F_MOVE)) > 0) {
            while (count > 0) {
                ssize_t sent = splice(pipes[0], NULL, way.to, NULL, (size_t)count, SPLICE_F_MOVE);
                if (sent <= 0) goto end;
                count -= sent;
            }
        }
    end:
        close(pipes[0]);
        close(pipes[1]);
    }
    shutdown(way.to, SHUT_WR);
    shutdown(way.from, SHUT_RD);
    return NULL;
}

/// Byte by byte, for what comes behind the head is not ours. Returns a port, or 0.
static unsigned short asked(int client) {
    char head[8192];
    size_t length = 0;
    while (length < sizeof head - 1 && read(client, head + length, 1) == 1) {
        length++;
        if (length < 4 || memcmp(head + length - 4, "\r\n\r\n", 4) != 0) continue;
        head[length] = 0;
        char *space = strncmp(head, "CONNECT ", 8) == 0 ? strchr(head + 8, ' ') : NULL;
        if (space == NULL) return 0;
        *space = 0;
        char *colon = strrchr(head + 8, ':');
        return colon == NULL ? 0 : (unsigned short)atoi(colon + 1);
    }
    return 0;
}

static void *serve(void *argument) {
    int client = (int)(long)argument, one = 1;
    unsigned short port = asked(client);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int origin = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (port != 0 && connect(origin, (struct sockaddr *)&address, sizeof address) == 0) {
        static const char yes[] = "HTTP/1.1 200 OK\r\n\r\n";
        setsockopt(origin, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (write(client, yes, sizeof yes - 1) == sizeof yes - 1) {
            struct way up = {client, origin}, down = {origin, client};
            pthread_t thread;
            if (pthread_create(&thread, NULL, pass, &up) == 0) {
                pass(&down);
                pthread_join(thread, NULL);
            }
        }
    }
    close(origin);
    close(client);
    return NULL;
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 128) != 0
        || getsockname(listener, (struct sockaddr *)&address, &length) != 0) return 1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0) continue;
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, (void *)(long)client) != 0) close(client);
        else pthread_detach(thread);
    }
}
