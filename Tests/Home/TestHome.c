/* What sessions remember, and what lies about while they load, is not for the home of whoever tests. Before anything of this
   process runs it gets a home of its own, in which its children live as well; it goes with the process. Every test target
   depends on this, and none need call it. */

#define _GNU_SOURCE
#include "TestHome.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

/* A child of the tests that is one of their programs again lives with its parent, who may kill it. */
static const char inherited[] = "URLLOADING_TEST_HOME";

__attribute__((constructor)) static void make_home(void) {
    const char *parents = getenv(inherited);
    if (parents && *parents) {
        snprintf(home, sizeof home, "%s", parents);
        return;
    }
    const char *folder = getenv("TMPDIR");
    int length = snprintf(home, sizeof home, "%s/urlloading-home-XXXXXX", folder && *folder == '/' ? folder : "/tmp");
    if (length <= 0 || length >= (int)sizeof home || !mkdtemp(home)) {
        home[0] = 0;
        return;
    }
    owner = getpid();
    point("XDG_CACHE_HOME", "cache");
    point("XDG_STATE_HOME", "state");
    /* What a download that failed leaves for whoever goes on with it, nobody does. */
    point("TMPDIR", "tmp");
    mkdir(getenv("TMPDIR"), 0700);
    setenv(inherited, home, 1);
    atexit(remove_home);
}
