// SPDX-License-Identifier: Apache-2.0

/* h2load or wrk as a contender (BENCH_TOOL): the whole of its process is measured, start and end included.
 * H2LOAD_STREAMS=1 has h2load send all at once over one connection, where otherwise each request at a time has a
 * connection of its own. wrk runs for a second on one thread and says how many requests it made. */

#include <BenchMeasure.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* "requests: 500 total, ..., 500 succeeded, ..." of h2load. */
static long succeeded(const char *line) {
    const char *found = strstr(line, " succeeded,");
    if (strncmp(line, "requests:", 9) || !found) return -1;
    while (found > line && found[-1] != ' ') found--;
    return atol(found);
}

/* "  93284 requests in 1.00s, 110.06MB read" of wrk. */
static long made(const char *line) { return strstr(line, " requests in ") ? atol(line) : -1; }

int main(int argc, char **argv) {
    const char *tool = getenv("BENCH_TOOL") ? getenv("BENCH_TOOL") : "h2load", *http2 = getenv("BENCH_HTTP2");
    int is_wrk = !strcmp(tool, "wrk"), streams = getenv("H2LOAD_STREAMS") != NULL;
    bench_options options = bench_parse(argc, argv, is_wrk ? "wrk" : "h2load, nghttp2");
    if (strcmp(options.scenario, "get") || options.places < options.connections || is_wrk == (http2 != NULL))
        bench_unsupported();
    char command[1024];
    if (is_wrk)
        snprintf(command, sizeof command, "exec wrk -t 1 -c %ld -d 1s %s", options.connections, options.url);
    else
        snprintf(command, sizeof command, "exec h2load -n %ld -c %ld -m %ld %s", options.requests,
                 streams ? 1 : options.connections, streams ? options.connections : 1, options.url);
    bench_start();
    FILE *output = popen(command, "r");
    if (!output) bench_fail("it does not start");
    char line[512];
    long requests = -1;
    while (fgets(line, sizeof line, output)) {
        long found = is_wrk ? made(line) : succeeded(line);
        if (found >= 0) requests = found;
        if (strstr(line, "Non-2xx") || strstr(line, "Socket errors")) bench_fail(line);
    }
    if (pclose(output)) bench_fail("it failed");
    if (requests < 0 || (!is_wrk && requests != options.requests)) bench_fail("not all succeeded");
    bench_stop(requests, requests * 1024LL);
    return 0;
}
