// SPDX-License-Identifier: Apache-2.0

#ifndef URLLOADING_TEST_HOME_H
#define URLLOADING_TEST_HOME_H

/* The folder that replaces the user's home for the files of this process; NULL if it could not be created. */
const char *urlloading_test_home(void);

#endif
