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
    (void)data, (void)context;
    bench_in_flight();
    bytes += size * n;
    return size * n;
}

static CURL *make(void) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    if (options.cafile) curl_easy_setopt(easy, CURLOPT_CAINFO, options.cafile);
    if (!strcmp(options.scenario, "bulk")) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 512L * 1024);
    if (!strcmp(options.scenario, "handshake")) curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    if (share) curl_easy_setopt(easy, CURLOPT_SHARE, share);
    return easy;
}

static void begin(CURL *easy, const char *url) {
    to_begin--;
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
        if (to_begin > 0) begin(easy, url);
    }
}

static void run(CURL **handles, long count, const char *url, long requests) {
    struct epoll_event events[256];
    int running;
    to_begin = to_finish = requests;
    bytes = 0;
    for (long i = 0; i < count && to_begin > 0; i++) begin(handles[i], url);
    while (to_finish > 0) {
        int wait = -1;
        if (timer_due >= 0) {
            long long left = timer_due - now();
            wait = left < 0 ? 0 : (int)left;
        }
        int n = wait == 0 ? 0 : epoll_wait(poller, events, 256, wait);
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
    curl_global_init(CURL_GLOBAL_ALL);
    poller = epoll_create1(EPOLL_CLOEXEC);
    multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, options.connections + 1);
    if (!strcmp(options.scenario, "handshake-resumed")) {
        share = curl_share_init();
        curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    }
    CURL **handles = calloc(options.connections, sizeof *handles);
    for (long i = 0; i < options.connections; i++) handles[i] = make();
    if (options.warm > 0) run(handles, options.connections, options.warm_url, options.warm);
    bench_start();
    run(handles, options.connections, options.url, options.requests);
    bench_stop(options.requests, bytes);
    return 0;
}
