// SPDX-License-Identifier: Apache-2.0

// What stays usable while the process exits.

#ifndef URLLOADING_C_EXIT_H
#define URLLOADING_C_EXIT_H

/// Keeps OpenSSL usable until the process has ended. `exit` would run OpenSSL's clean-up, which frees locks and
/// algorithms, while loads on other threads still use them: the process then ends with SIGSEGV in place of its exit
/// code. A constructor does the same before `main`, because the first caller decides, and another library of the
/// program may use OpenSSL too. Returns 1, or 0 where OpenSSL could not be initialised.
int cexit_keep_openssl(void);

#endif
