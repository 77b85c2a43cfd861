// SPDX-License-Identifier: Apache-2.0

/* The floor: what HTTP/1.1 keep-alive costs with bare sockets, epoll, sendfile and OpenSSL, and nothing a
 * client needs besides. One thread, or with RAWC_TWICE two processes; sockets registered once, edge-triggered; Content-Length only. */

#include <BenchMeasure.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum state { closed, connecting, handshaking, sending, sending_body, receiving_head, receiving_body };

typedef struct {
    int fd;
    enum state state;
    SSL *ssl;
    size_t length, sent;   /* of the request, then of the head so far */
    long long left;        /* of the body, of the request or of the answer */
    int file;              /* what is sent, or written */
    off_t offset;
    int close_after;
    int low_water;
    long long began;       /* the request, in `paced` */
    char buffer[4096];     /* the request, then the head of the answer */
} connection;

static bench_options options;
static int poller;
static SSL_CTX *tls;
static SSL_SESSION *sessions[64];     /* tickets, each for one connection: OpenSSL spoils a used one */
static int session_count;
static char bulk[256 * 1024];         /* one for all: nothing reads it */

static enum { none, from_file, from_memory, to_file } transfer;
static const char *file_name;         /* what is sent, or written anew for each request */
static long long upload_length;

static const char *path;              /* of the phase under way */
static long to_begin, to_finish;
static long long bytes;

static connection **resting;          /* `paced`: connections without a request */
static long resting_count, paced;
static int starved;                   /* a request was due while there was none */

static char host[256], port_text[8];
static struct sockaddr_in address;

/* http://127.0.0.1:8080/path, an address and not a name: no resolver in the measured region. */
static const char *parse(const char *url) {
    const char *authority = strstr(url, "://");
    if (!authority) bench_fail("not a URL");
    authority += 3;
    const char *slash = strchr(authority, '/');
    if (!slash || sscanf(authority, "%255[^:/]:%7[0-9]", host, port_text) != 2) bench_fail("not a URL with a port");
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(port_text));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) bench_fail("not an IPv4 address");
    return slash;
}

static int keep_session(SSL *ssl, SSL_SESSION *fresh) {
    (void)ssl;
    if (session_count == sizeof sessions / sizeof *sessions) return 0;
    sessions[session_count++] = fresh;
    return 1;
}

static void prepare_tls(void) {
    tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_read_ahead(tls, 1);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    if (!strcmp(options.scenario, "bulk")) SSL_CTX_set_default_read_buffer_len(tls, 128 * 1024);
    if (options.cafile ? !SSL_CTX_load_verify_file(tls, options.cafile) : !SSL_CTX_set_default_verify_paths(tls))
        bench_fail("cannot read the CA file");
    if (options.cafile && getenv("BENCH_BUNDLE") && !SSL_CTX_set_default_verify_paths(tls)) bench_fail("no system roots");
    if (!strcmp(options.scenario, "handshake-resumed")) {
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(tls, keep_session);
    } else {
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    }
}

static void open_socket(connection *c) {
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) bench_fail("socket");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    c->state = connecting;
    c->low_water = 0;
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) bench_fail("connect");
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c };
    if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event)) bench_fail("epoll_ctl");
}

static void close_socket(connection *c) {
    if (c->ssl) {
        SSL_shutdown(c->ssl);
        SSL_free(c->ssl);
        c->ssl = NULL;
    }
    close(c->fd);
    c->state = closed;
}

static void begin(connection *c) {
    to_begin--;
    c->sent = 0;
    if (transfer == from_file || transfer == from_memory) {
        c->length = snprintf(c->buffer, sizeof c->buffer,
            "PUT %s HTTP/1.1\r\nHost: %s:%s\r\nAccept: */*\r\nUser-Agent: rawc\r\nContent-Length: %lld\r\n\r\n",
            path, host, port_text, upload_length);
    } else c->length = snprintf(c->buffer, sizeof c->buffer,
        "GET %s HTTP/1.1\r\nHost: %s:%s\r\nAccept: */*\r\nUser-Agent: rawc\r\n\r\n", path, host, port_text);
    if (c->state == closed) open_socket(c); else c->state = sending;
}

/* Bytes, 0 for "wait", -1 for the end. */
static long pull(connection *c, void *into, size_t room) {
    if (!c->ssl) {
        ssize_t n = recv(c->fd, into, room, 0);
        if (n > 0) return n;
        return n < 0 && errno == EAGAIN ? 0 : -1;
    }
    int n = SSL_read(c->ssl, into, room);
    if (n > 0) return n;
    int why = SSL_get_error(c->ssl, n);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static long push(connection *c, const void *from, size_t length) {
    if (!c->ssl) {
        ssize_t n = send(c->fd, from, length, MSG_NOSIGNAL);
        if (n >= 0) return n;
        return errno == EAGAIN ? 0 : -1;
    }
    int n = SSL_write(c->ssl, from, length);
    if (n > 0) return n;
    int why = SSL_get_error(c->ssl, n);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

/* The status must be 200 and the length must be said. Returns where the body begins, 0 for "not yet". */
static size_t parse_head(connection *c) {
    char *end = memmem(c->buffer, c->length, "\r\n\r\n", 4);
    if (!end) return 0;
    if (c->length < 12 || memcmp(c->buffer, "HTTP/1.1 200", 12)) bench_fail("not a 200");
    c->left = -1;
    c->close_after = 0;
    for (char *line = memchr(c->buffer, '\n', end - c->buffer); line && line < end; line = memchr(line, '\n', end - line)) {
        line++;
        if (!strncasecmp(line, "content-length:", 15)) c->left = strtoll(line + 15, NULL, 10);
        else if (!strncasecmp(line, "connection: close", 17)) c->close_after = 1;
    }
    if (c->left < 0) bench_fail("no Content-Length");
    return end + 4 - c->buffer;
}

static void begin_tls(connection *c) {
    c->ssl = SSL_new(tls);
    SSL_set_fd(c->ssl, c->fd);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), host);
    if (session_count > 0) {
        SSL_SESSION *session = sessions[--session_count];
        SSL_set_session(c->ssl, session);
        SSL_SESSION_free(session);
    }
    SSL_set_connect_state(c->ssl);
    c->state = handshaking;
}

/* Wakes up for half a buffer and not for each segment; for the tail, for what there is. Plain only: with
 * TLS it costs more than it saves. */
static void await_much(connection *c) {
    int wanted = c->left >= (long long)sizeof bulk ? sizeof bulk / 2 : 1;
    if (wanted == c->low_water || (wanted == 1 && c->low_water == 0)) return;
    c->low_water = wanted;
    setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted);
}

static int open_file(int flags) {
    int file = open(file_name, flags | O_CLOEXEC, 0600);
    if (file < 0) { perror(file_name); exit(1); }
    return file;
}

static void write_all(int file, const char *from, size_t length) {
    while (length > 0) {
        ssize_t n = write(file, from, length);
        if (n < 0) bench_fail("write");
        from += n;
        length -= n;
    }
}

/* As far as the socket lets it. */
static void advance(connection *c) {
    for (;;) {
        long n;
        switch (c->state) {
        case closed:
            return;
        case connecting: {
            int error = 0;
            socklen_t length = sizeof error;
            getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
            if (error) { errno = error; perror("connect"); exit(1); }
            if (tls) begin_tls(c); else c->state = sending;
            break;
        }
        case handshaking: {
            int done = SSL_do_handshake(c->ssl);
            if (done == 1) { c->state = sending; break; }
            int why = SSL_get_error(c->ssl, done);
            if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return;
            ERR_print_errors_fp(stderr);
            bench_fail("handshake");
        }
        case sending:
            n = push(c, c->buffer + c->sent, c->length - c->sent);
            if (n < 0) bench_fail("send");
            if (n == 0) return;
            c->sent += n;
            if (c->sent < c->length) break;
            c->length = 0;
            if (transfer == from_file || transfer == from_memory) {
                c->left = upload_length;
                c->offset = 0;
                if (transfer == from_file) c->file = open_file(O_RDONLY);
                c->state = sending_body;
                break;
            }
            c->state = receiving_head;
            /* The answer cannot be here yet; the edge will say when it is. */
            return;
        case sending_body:
            while (c->left > 0) {
                if (transfer == from_file) n = sendfile(c->fd, c->file, &c->offset, c->left < 1 << 30 ? c->left : 1 << 30);
                else n = send(c->fd, bulk, c->left < options.piece ? c->left : options.piece, MSG_NOSIGNAL);
                if (n < 0 && errno == EAGAIN) return;
                if (n <= 0) bench_fail("send");
                c->left -= n;
            }
            if (transfer == from_file) close(c->file);
            bytes += upload_length;
            c->state = receiving_head;
            return;
        case receiving_head: {
            n = pull(c, c->buffer + c->length, sizeof c->buffer - c->length);
            if (n < 0) bench_fail("closed in the head");
            if (n == 0) return;
            c->length += n;
            size_t head = parse_head(c);
            if (!head) { if (c->length == sizeof c->buffer) bench_fail("head too long"); break; }
            bench_in_flight();
            if (transfer == none || transfer == to_file) bytes += c->length - head;
            c->left -= c->length - head;
            if (transfer == to_file) {
                c->file = open_file(O_WRONLY | O_CREAT | O_EXCL);
                write_all(c->file, c->buffer + head, c->length - head);
            }
            c->state = receiving_body;
            break;
        }
        case receiving_body:
            if (c->left > 0) {
                if (!c->ssl) await_much(c);
                n = pull(c, bulk, sizeof bulk);
                if (n < 0) bench_fail("closed in the body");
                if (n == 0) return;
                if (transfer == none || transfer == to_file) bytes += n;
                if (transfer == to_file) write_all(c->file, bulk, n);
                c->left -= n;
                break;
            }
            if (transfer == to_file) {
                close(c->file);
                if (unlink(file_name)) bench_fail("unlink");
            }
            to_finish--;
            if (c->close_after) close_socket(c);
            if (paced) {
                bench_latency(bench_now() - c->began);
                if (c->state != closed) c->state = sending, c->sent = c->length = 0;
                resting[resting_count++] = c;
                return;
            }
            if (to_begin == 0) { if (c->state != closed) c->state = sending, c->sent = c->length = 0; return; }
            begin(c);
            if (c->state == connecting) return;
        }
    }
}

/* Begins the requests that are due. Returns the time until the next one in nanoseconds; -1 if none can begin. */
static long long begin_due(long requests) {
    while (to_begin > 0) {
        long long due = bench_due(requests - to_begin), left = due - bench_now();
        if (resting_count == 0) { starved |= left <= 0; return -1; }
        if (left > 0) { starved = 0; return left; }
        connection *c = resting[--resting_count];
        c->began = bench_begin(due, starved);
        begin(c);
        if (c->state == sending) advance(c);
    }
    return -1;
}

static void run_paced(connection *connections, long count, const char *url, long requests) {
    path = parse(url);
    to_begin = to_finish = requests;
    bytes = resting_count = 0;
    resting = calloc(count, sizeof *resting);
    for (long i = 0; i < count; i++) resting[resting_count++] = &connections[i];
    struct epoll_event events[256];
    paced = 1;
    while (to_finish > 0) {
        long long left = begin_due(requests);
        struct timespec wait = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
        int n = epoll_pwait2(poller, events, 256, left < 0 ? NULL : &wait, NULL);
        for (int i = 0; i < n; i++) {
            connection *c = events[i].data.ptr;
            if (c->state == sending && c->length == 0) continue;
            advance(c);
        }
    }
}

static void run(connection *connections, long count, const char *url, long requests) {
    path = parse(url);
    to_begin = to_finish = requests;
    bytes = 0;
    struct epoll_event events[256];
    for (long i = 0; i < count && to_begin > 0; i++) {
        begin(&connections[i]);
        if (connections[i].state == sending) advance(&connections[i]);
    }
    while (to_finish > 0) {
        int n = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < n; i++) {
            connection *c = events[i].data.ptr;
            if (c->state == sending && c->length == 0) continue; /* idle: nothing asked for */
            advance(c);
        }
    }
}

/* On two cores: half by a child. What it costs to be on both beside a server is no client's fault. */
static void run_twice(connection *connections) {
    long half = options.connections / 2;
    pid_t child = fork();
    if (child < 0) bench_fail("fork");
    if (child == 0) {
        close(poller);
        poller = epoll_create1(EPOLL_CLOEXEC);
        run(calloc(half, sizeof(connection)), half, options.url, options.requests / 2);
        _exit(0);
    }
    run(connections, options.connections - half, options.url, options.requests - options.requests / 2);
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) bench_fail("the child failed");
    bytes += bytes / (options.requests - options.requests / 2) * (options.requests / 2);
}

int main(int argc, char **argv) {
    options = bench_parse(argc, argv, "bare sockets, OpenSSL " OPENSSL_VERSION_STR);
    signal(SIGPIPE, SIG_IGN);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (!strncmp(options.url, "https:", 6)) prepare_tls();
    if (!strcmp(options.scenario, "upload-file")) transfer = from_file;
    if (!strcmp(options.scenario, "upload-memory")) transfer = from_memory;
    if (!strcmp(options.scenario, "download")) transfer = to_file;
    file_name = getenv(transfer == to_file ? "BENCH_TARGET" : "BENCH_SOURCE");
    if (options.piece > (long)sizeof bulk) bench_fail("the piece is too large");
    if (!strcmp(options.scenario, "beside")) bench_unsupported();
    if (getenv("BENCH_HTTP2") && atoi(getenv("BENCH_HTTP2")) && strcmp(options.scenario, "bulk")) bench_unsupported();
    if (options.places < options.connections) options.connections = options.places;
    upload_length = getenv("BENCH_LENGTH") ? atoll(getenv("BENCH_LENGTH")) : 0;
    connection *connections = calloc(options.connections, sizeof(connection));
    if (options.warm > 0) run(connections, options.connections, options.warm_url, options.warm);
    bench_start();
    if (options.rate > 0) {
        run_paced(connections, options.connections, options.url, options.requests);
    } else if (getenv("RAWC_TWICE")) {
        run_twice(connections);
    } else {
        run(connections, options.connections, options.url, options.requests);
    }
    bench_stop(options.requests, bytes);
    return 0;
}
