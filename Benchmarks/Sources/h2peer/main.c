// SPDX-License-Identifier: Apache-2.0

/* h2load as a contender: the whole of its process is measured, start and end included. H2LOAD_STREAMS=1 has it
 * send all at once over one connection, where otherwise each request at a time has a connection of its own. */

#include <BenchMeasure.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    bench_options options = bench_parse(argc, argv, "h2load, nghttp2");
    if (strcmp(options.scenario, "get")) bench_unsupported();
    int streams = getenv("H2LOAD_STREAMS") != NULL;
    char command[1024];
    snprintf(command, sizeof command, "exec h2load -n %ld -c %ld -m %ld %s", options.requests,
             streams ? 1 : options.connections, streams ? options.connections : 1, options.url);
    bench_start();
    FILE *output = popen(command, "r");
    if (!output) bench_fail("no h2load");
    char line[512];
    long succeeded = -1;
    while (fgets(line, sizeof line, output)) {
        const char *found = strstr(line, " succeeded,");
        if (strncmp(line, "requests:", 9) || !found) continue;
        while (found > line && found[-1] != ' ') found--;
        succeeded = atol(found);
    }
    if (pclose(output)) bench_fail("h2load failed");
    if (succeeded != options.requests) bench_fail("not all succeeded");
    bench_stop(options.requests, options.requests * 1024LL);
    return 0;
}
