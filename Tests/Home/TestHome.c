/* What sessions remember is not for the home of whoever tests. Before anything of this process runs it gets a home of its
   own, as do its children; it goes with the process. Every test target depends on this, and none need call it. */

#define _GNU_SOURCE
#include "TestHome.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char home[PATH_MAX];
static pid_t owner;

const char *urlloading_test_home(void) { return home[0] ? home : NULL; }

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind, (void)place;
    remove(path);
    return 0;
}

static void remove_home(void) {
    /* Not by a child that ends without having become another program. */
    if (getpid() == owner) nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void point(const char *variable, const char *name) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", home, name);
    setenv(variable, path, 1);
}

__attribute__((constructor)) static void make_home(void) {
    const char *folder = getenv("TMPDIR");
    int length = snprintf(home, sizeof home, "%s/urlloading-home-XXXXXX", folder && *folder == '/' ? folder : "/tmp");
    if (length <= 0 || length >= (int)sizeof home || !mkdtemp(home)) {
        home[0] = 0;
        return;
    }
    owner = getpid();
    point("XDG_CACHE_HOME", "cache");
    point("XDG_STATE_HOME", "state");
    atexit(remove_home);
}
