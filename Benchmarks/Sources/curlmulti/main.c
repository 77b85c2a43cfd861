// SPDX-License-Identifier: Apache-2.0

/* libcurl's multi interface driven by epoll, the fastest way it offers: one easy handle a connection,
 * used again for every request; callbacks only count. */

#include <BenchMeasure.h>

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

static bench_options options;
static CURLM *multi;
static CURLSH *share;
static int poller;
static long long timer_due = -1; /* ms on the monotonic clock */
static long to_begin, to_finish;
static long long bytes;
static FILE *target;                  /* `download`: what the body is written to */
static long long upload_length;
static int is_upload, is_download, is_http2, is_http3, paced;
static CURL **resting;                /* `paced`: handles without a request */
static long resting_count;
static int starved;                   /* a request was due while there was none */
static long requests_of_run;

static void check(CURLMcode code) {
    if (code != CURLM_OK) bench_fail(curl_multi_strerror(code));
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known) {
    (void)easy, (void)context;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL);
        curl_multi_assign(multi, fd, NULL);
        return 0;
    }
    struct epoll_event event = { .data.fd = fd };
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (epoll_ctl(poller, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event)) perror("epoll_ctl");
    if (!known) curl_multi_assign(multi, fd, &poller);
    return 0;
}

static int on_timer(CURLM *m, long ms, void *context) {
    (void)m, (void)context;
    timer_due = ms < 0 ? -1 : now() + ms;
    return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *context) {
    (void)context;
    bench_in_flight();
    if (is_upload) return size * n;
    bytes += size * n;
    return target ? fwrite(data, size, n, target) * size : size * n;
}

static char piece[256 * 1024];
static long long to_send;

static size_t on_send(char *into, size_t size, size_t n, void *context) {
    (void)context;
    long long room = (long long)(size * n);
    long long count = to_send < room ? to_send : room;
    if (count > options.piece) count = options.piece;
    memcpy(into, piece, count);
    to_send -= count;
    bytes += count;
    return count;
}

static CURL *make(void) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     (long)(is_http3 ? CURL_HTTP_VERSION_3ONLY
                            : is_http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    if (is_http2 || is_http3) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    if (is_upload) {
        /* The server sends no 100. */
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, curl_slist_append(NULL, "Expect:"));
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)upload_length);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, options.piece);
    }
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    if (options.cafile) curl_easy_setopt(easy, CURLOPT_CAINFO, options.cafile);
    if (!strcmp(options.scenario, "bulk") || is_download) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 512L * 1024);
    if (!strcmp(options.scenario, "handshake")) curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    if (getenv("BENCH_NEW")) curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    if (share) curl_easy_setopt(easy, CURLOPT_SHARE, share);
    return easy;
}

static void begin(CURL *easy, const char *url) {
    to_begin--;
    to_send = upload_length;
    if (is_download && !(target = fopen(getenv("BENCH_TARGET"), "we"))) bench_fail("cannot write the file");
    if (target) setvbuf(target, NULL, _IONBF, 0);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    check(curl_multi_add_handle(multi, easy));
}

static void collect(const char *url) {
    CURLMsg *message;
    int queued;
    while ((message = curl_multi_info_read(multi, &queued))) {
        if (message->msg != CURLMSG_DONE) continue;
        CURL *easy = message->easy_handle;
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (message->data.result != CURLE_OK) bench_fail(curl_easy_strerror(message->data.result));
        if (status != 200) bench_fail("not a 200");
        check(curl_multi_remove_handle(multi, easy));
        to_finish--;
        if (is_download && (fclose(target) || unlink(getenv("BENCH_TARGET")))) bench_fail("no file");
        if (paced) {
            long long *began;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, &began);
            bench_latency(bench_now() - *began);
            resting[resting_count++] = easy;
        } else if (to_begin > 0) begin(easy, url);
    }
}

/* Begins the requests that are due. Returns the time until the next one in nanoseconds; -1 if none can begin. */
static long long begin_due(const char *url) {
    while (to_begin > 0) {
        long long due = bench_due(requests_of_run - to_begin), left = due - bench_now();
        if (resting_count == 0) { starved |= left <= 0; return -1; }
        if (left > 0) { starved = 0; return left; }
        CURL *easy = resting[--resting_count];
        long long *began;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &began);
        *began = bench_begin(due, starved);
        begin(easy, url);
    }
    return -1;
}

static void run(CURL **handles, long count, const char *url, long requests) {
    struct epoll_event events[256];
    int running;
    to_begin = to_finish = requests;
    bytes = 0;
    requests_of_run = requests;
    if (paced) {
        memcpy(resting, handles, count * sizeof *handles);
        resting_count = count;
    }
    for (long i = 0; !paced && i < count && to_begin > 0; i++) begin(handles[i], url);
    while (to_finish > 0) {
        long long wait = paced ? begin_due(url) : -1;
        if (timer_due >= 0) {
            long long left = (timer_due - now()) * 1000000;
            if (left < 0) left = 0;
            if (wait < 0 || left < wait) wait = left;
        }
        struct timespec limit = { .tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000 };
        int n = wait == 0 ? 0 : epoll_pwait2(poller, events, 256, wait < 0 ? NULL : &limit, NULL);
        if (timer_due >= 0 && timer_due <= now()) {
            timer_due = -1;
            check(curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running));
        }
        for (int i = 0; i < n; i++) {
            int what = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0)
                | (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0)
                | (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
            check(curl_multi_socket_action(multi, events[i].data.fd, what, &running));
        }
        collect(url);
    }
}

int main(int argc, char **argv) {
    char version[128];
    curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    snprintf(version, sizeof version, "libcurl/%s, %s", info->version, info->ssl_version);
    options = bench_parse(argc, argv, version);
    signal(SIGPIPE, SIG_IGN);
    is_upload = !strcmp(options.scenario, "upload-memory");
    is_download = !strcmp(options.scenario, "download");
    is_http2 = getenv("BENCH_HTTP2") && atoi(getenv("BENCH_HTTP2"));
    is_http3 = getenv("BENCH_HTTP3") && atoi(getenv("BENCH_HTTP3"));
    upload_length = is_upload ? atoll(getenv("BENCH_LENGTH")) : 0;
    if (!strcmp(options.scenario, "beside") || !strcmp(options.scenario, "upload-file")) bench_unsupported();
    /* Without TLS its multi interface ends in an error of the framing layer. */
    if (is_http2 && !options.cafile) bench_unsupported();
    if (is_http3 && !(info->features & CURL_VERSION_HTTP3)) bench_unsupported();
    curl_global_init(CURL_GLOBAL_ALL);
    poller = epoll_create1(EPOLL_CLOEXEC);
    multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, options.places + 1);
    if (is_http2 || is_http3) curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    else if (options.places < options.connections) curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, options.places);
    if (!strcmp(options.scenario, "handshake-resumed")) {
        share = curl_share_init();
        curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    }
    CURL **handles = calloc(options.connections, sizeof *handles);
    for (long i = 0; i < options.connections; i++) handles[i] = make();
    if (options.rate > 0) {
        long long *moments = calloc(options.connections, sizeof *moments);
        resting = calloc(options.connections, sizeof *resting);
        for (long i = 0; i < options.connections; i++) curl_easy_setopt(handles[i], CURLOPT_PRIVATE, &moments[i]);
    }
    if (options.warm > 0) run(handles, options.connections, options.warm_url, options.warm);
    bench_start();
    paced = options.rate > 0;
    run(handles, options.connections, options.url, options.requests);
    bench_stop(options.requests, bytes);
    return 0;
}
