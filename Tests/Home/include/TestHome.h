#ifndef URLLOADING_TEST_HOME_H
#define URLLOADING_TEST_HOME_H

/* The folder in which the tests of this process keep what programs keep in a user's home; NULL if none could be made. */
const char *urlloading_test_home(void);

#endif
