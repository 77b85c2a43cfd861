// SPDX-License-Identifier: Apache-2.0

#include "BenchMeasure.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    double wall, cpu;
    long switches, allocations, rss;
} sample;

static sample began;
static int wants_in_flight, wants_all;
static atomic_int in_flight_taken = 1; /* open between bench_start and the first response */
static long in_flight_rss;

enum { latencies_kept = 1 << 20 };
static long long *latencies, began_at;
static atomic_long latency_count;
static long rate;

/* A line of a /proc file in KB, or 0. The rollup is exact where statm counts in per-CPU batches. */
static long proc_kb(const char *path, const char *key) {
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    char line[256];
    long value = 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) { value = atol(line + strlen(key)); break; }
    fclose(file);
    return value;
}

long bench_rss(void) { return proc_kb("/proc/self/smaps_rollup", "Rss:"); }

static long allocation_count(void) {
    static long (*count)(void);
    static int looked;
    if (!looked) { looked = 1; count = (long (*)(void))dlsym(RTLD_DEFAULT, "malloccount_read"); }
    return count ? count() : -1;
}

/* Children count: h2load is one. */
static double seconds(struct rusage u) {
    return u.ru_utime.tv_sec + u.ru_utime.tv_usec / 1e6 + u.ru_stime.tv_sec + u.ru_stime.tv_usec / 1e6;
}

static sample take(void) {
    sample s;
    struct rusage u, children;
    struct timespec t;
    s.allocations = allocation_count();
    getrusage(RUSAGE_SELF, &u);
    getrusage(RUSAGE_CHILDREN, &children);
    clock_gettime(CLOCK_MONOTONIC, &t);
    s.wall = t.tv_sec + t.tv_nsec / 1e9;
    s.cpu = seconds(u) + seconds(children);
    s.switches = u.ru_nvcsw + u.ru_nivcsw + children.ru_nvcsw + children.ru_nivcsw;
    s.rss = 0;
    return s;
}

long long bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

long long bench_due(long number) { return began_at + number * 1000000000LL / rate; }

long long bench_begin(long long due, int was_busy) { return was_busy ? due : bench_now(); }

void bench_latency(long long nanoseconds) {
    long index = atomic_fetch_add_explicit(&latency_count, 1, memory_order_relaxed);
    if (index < latencies_kept) latencies[index] = nanoseconds;
}

static int ascending(const void *a, const void *b) {
    long long x = *(const long long *)a, y = *(const long long *)b;
    return x < y ? -1 : x > y;
}

/* Microseconds that this share of the latencies does not exceed; -1 without any. */
static double percentile(double share) {
    long count = atomic_load(&latency_count);
    if (count > latencies_kept) count = latencies_kept;
    return count == 0 ? -1 : latencies[(long)(share * (count - 1))] / 1e3;
}

static long number(const char *name, long otherwise) {
    const char *value = getenv(name);
    return value && *value ? atol(value) : otherwise;
}

bench_options bench_parse(int argc, char *const *argv, const char *version) {
    if (argc > 1 && !strcmp(argv[1], "version")) { printf("%s\n", version); exit(0); }
    if (argc < 5) bench_fail("usage: contender <scenario> <url> <connections> <requests> [cafile]");
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit)) { limit.rlim_cur = limit.rlim_max; setrlimit(RLIMIT_NOFILE, &limit); }
    const char *warm_url = getenv("BENCH_WARM_URL");
    bench_options o = {
        .scenario = argv[1], .url = argv[2], .warm_url = warm_url ? warm_url : argv[2],
        .cafile = argc > 5 ? argv[5] : NULL,
        .connections = atol(argv[3]), .requests = atol(argv[4]), .warm = number("BENCH_WARM", 0),
        .places = number("BENCH_PLACES", atol(argv[3])), .piece = number("BENCH_PIECE", 256 * 1024),
        .rate = strcmp(argv[1], "paced") ? 0 : number("BENCH_RATE", 10000),
    };
    rate = o.rate;
    if (rate > 0 || !strcmp(o.scenario, "beside")) latencies = malloc(latencies_kept * sizeof *latencies);
    wants_in_flight = !strcmp(o.scenario, "inflight");
    wants_all = !strcmp(o.scenario, "start");
    if (o.connections < 1 || o.requests < 1) bench_fail("connections and requests start at 1");
    return o;
}

/* A serial exchange costs two or three times as much when it crosses cores, and whether it does is the
 * scheduler's mood: BENCH_CORE puts every thread on the server's. Only now, so that pools have their width. */
static void share_core(void) {
    const char *core = getenv("BENCH_CORE");
    DIR *tasks = core ? opendir("/proc/self/task") : NULL;
    if (!tasks) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(core), &set);
    for (struct dirent *task; (task = readdir(tasks));)
        if (task->d_name[0] != '.') sched_setaffinity(atoi(task->d_name), sizeof set, &set);
    closedir(tasks);
}

void bench_start(void) {
    share_core();
    long rss = bench_rss();
    allocation_count();
    began = take();
    began.rss = rss;
    began_at = bench_now();
    if (wants_all) began.allocations = 0; /* what came before main counts too */
    if (wants_in_flight) atomic_store(&in_flight_taken, 0);
}

void bench_in_flight(void) {
    if (atomic_load_explicit(&in_flight_taken, memory_order_relaxed) || atomic_exchange(&in_flight_taken, 1)) return;
    in_flight_rss = bench_rss();
}

void bench_stop(long requests, long long bytes) {
    sample ended = take();
    long now = wants_in_flight ? in_flight_rss : bench_rss();
    long count = atomic_load(&latency_count);
    if (count > 0) qsort(latencies, count < latencies_kept ? count : latencies_kept, sizeof *latencies, ascending);
    /* VmHWM and not ru_maxrss, which an exec inherits from its parent. */
    printf("{\"requests\":%ld,\"bytes\":%lld,\"wall\":%.6f,\"cpu\":%.6f,\"switches\":%ld,"
           "\"allocations\":%ld,\"maxrss\":%ld,\"rss\":%ld,\"p50\":%.1f,\"p99\":%.1f}\n",
           requests, bytes, ended.wall - began.wall, ended.cpu - began.cpu, ended.switches - began.switches,
           ended.allocations < 0 ? -1 : ended.allocations - began.allocations,
           proc_kb("/proc/self/status", "VmHWM:"), now - began.rss, percentile(0.5), percentile(0.99));
    fflush(stdout);
}

void bench_unsupported(void) { exit(77); }

void bench_fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(1);
}
