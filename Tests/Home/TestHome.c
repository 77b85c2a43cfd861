// SPDX-License-Identifier: Apache-2.0

/* Keeps the files of sessions out of the developer's home folder: before any other code of a test process runs, the
   folders of caches, state and temporary files are set to a new folder, which child processes inherit and which is
   removed when the process ends. Every test target depends on this target; nothing has to be called. */

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
    /* A forked child that exits before exec must not remove the folder of its parent. */
    if (getpid() == owner) nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void point(const char *variable, const char *name) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", home, name);
    setenv(variable, path, 1);
}

/* A child process uses the folder of its parent: the parent may kill the child, which then cannot remove a folder. */
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
    /* TMPDIR too: partial files of failed downloads stay there, and no later run resumes them. */
    point("TMPDIR", "tmp");
    mkdir(getenv("TMPDIR"), 0700);
    setenv(inherited, home, 1);
    atexit(remove_home);
}
