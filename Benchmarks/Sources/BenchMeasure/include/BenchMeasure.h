// SPDX-License-Identifier: Apache-2.0

#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

/* The command line and the measured region of a contender, the same for all of them:
 *
 *     contender <scenario> <url> <connections> <requests> [cafile]
 *
 * The driver says in BENCH_WARM how many requests come before the measured region and in
 * BENCH_WARM_URL where they go; uploads send the file BENCH_SOURCE or BENCH_LENGTH bytes, downloads are
 * written to BENCH_TARGET and removed; with BENCH_NEW no connection is kept for a second request (far scenarios);
 * one JSON line on standard output is the result. */
/* `paced` is a GET whose requests begin at a fixed rate; `beside` is a bulk transfer, with GETs of BENCH_BESIDE_URL
 * one after the other until it ends. Both report the latency of each GET. */

typedef struct {
    const char *_Nonnull scenario; /* get bulk handshake handshake-resumed inflight start
                                      upload-file upload-memory download paced beside */
    const char *_Nonnull url;
    const char *_Nonnull warm_url;
    const char *_Nullable cafile;
    long connections; /* requests at a time */
    long places;      /* the limit of connections: less than `connections` if requests queue */
    long piece;       /* bytes of a piece of a streamed upload */
    long rate;        /* `paced`: requests a second */
    long requests;
    long warm;
} bench_options;

/* Prints `version` and leaves if that is the scenario. Raises the descriptor limit to the hard one. */
bench_options bench_parse(int argc, char *_Nullable const *_Nonnull argv, const char *_Nonnull version);

void bench_start(void);                            /* the measured region begins */
void bench_in_flight(void);                        /* the first call samples memory with everything in flight */
void bench_stop(long requests, long long bytes);   /* ends the region, prints the line */

/* Monotonic nanoseconds; the moment at which a request of `paced` is due, counted from 0 and from bench_start. */
long long bench_now(void);
long long bench_due(long number);
/* When the latency of a request begins: when it was due if its worker was still busy then, otherwise when it starts,
 * so that the lateness of timers does not count. */
long long bench_begin(long long due, int was_busy);
void bench_latency(long long nanoseconds);         /* from any thread */

long bench_rss(void);                              /* of this process now, in KB */

/* Leaves with a status the driver shows as a dash. */
_Noreturn void bench_unsupported(void);
_Noreturn void bench_fail(const char *_Nonnull why);

#endif
