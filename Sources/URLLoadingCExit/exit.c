// SPDX-License-Identifier: Apache-2.0

#ifdef __linux__ // elsewhere URLLoadingPlatform has the error

#include "URLLoadingCExit.h"

#include <openssl/crypto.h>

int cexit_keep_openssl(void) { return OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, 0); }

__attribute__((constructor)) static void keep_openssl(void) { cexit_keep_openssl(); }

#endif
