// OpenSSL 3 as Swift sees it. Much of its surface is macros over `SSL_ctrl`, or macros that make
// functions: those used here stand below as inline functions, `c_` before the name they call.
#ifndef COPENSSL_H
#define COPENSSL_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// Contexts.
static inline int c_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int c_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}
static inline void c_SSL_CTX_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }
static inline void c_SSL_CTX_set_read_ahead(SSL_CTX *context, int on) { SSL_CTX_set_read_ahead(context, on); }
static inline void c_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}
static inline int c_SSL_CTX_add0_chain_cert(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add0_chain_cert(context, certificate);
}
// The SSL_OP_ constants are computed by a macro that Swift cannot read.
static inline uint64_t c_SSL_OP_NO_RENEGOTIATION(void) { return SSL_OP_NO_RENEGOTIATION; }
static inline uint64_t c_SSL_OP_NO_COMPRESSION(void) { return SSL_OP_NO_COMPRESSION; }
static inline uint64_t c_SSL_OP_NO_TICKET(void) { return SSL_OP_NO_TICKET; }
static inline uint64_t c_SSL_OP_IGNORE_UNEXPECTED_EOF(void) { return SSL_OP_IGNORE_UNEXPECTED_EOF; }

// Connections.
static inline int c_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}
static inline int c_ERR_reason(unsigned long code) { return ERR_GET_REASON(code); }
static inline int c_ERR_lib(unsigned long code) { return ERR_GET_LIB(code); }

// Stacks and stores.
static inline int c_sk_X509_num(const STACK_OF(X509) *stack) { return sk_X509_num(stack); }
static inline X509 *c_sk_X509_value(const STACK_OF(X509) *stack, int index) { return sk_X509_value(stack, index); }
/// Adds to `to` every certificate that `from` holds in memory.
static inline int c_X509_STORE_copy(X509_STORE *from, X509_STORE *to) {
    int done = 1;
    X509_STORE_lock(from);
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(from);
    for (int i = 0; done && i < sk_X509_OBJECT_num(objects); i++) {
        X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
        if (certificate) done = X509_STORE_add_cert(to, certificate);
    }
    X509_STORE_unlock(from);
    return done;
}
/// Whether `path` is a directory as `openssl rehash` leaves it: names like `5ed36f99.0`.
static inline int c_is_hashed_directory(const char *path) {
    DIR *directory = opendir(path);
    if (!directory) return 0;
    int found = 0;
    struct dirent *entry;
    while (!found && (entry = readdir(directory)))
        found = strlen(entry->d_name) == 10 && strspn(entry->d_name, "0123456789abcdef") == 8
            && strcmp(entry->d_name + 8, ".0") == 0;
    closedir(directory);
    return found;
}

// Keys and memory, for certificates made at run time.
static inline EVP_PKEY *c_EVP_EC_gen(const char *curve) { return EVP_EC_gen(curve); }
static inline long c_BIO_get_mem_data(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }

#endif
