// OpenSSL 3 as Swift sees it. Much of its surface is macros over `SSL_ctrl`, which Swift cannot
// import: those used here stand below as inline functions, named after the macro they call.
#ifndef COPENSSL_H
#define COPENSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#endif
