// SPDX-License-Identifier: Apache-2.0

// OpenSSL 3 for Swift. Much of its API consists of macros over `SSL_ctrl`, or macros that generate functions; those
// used here are wrapped by inline functions with the prefix `c_`.
#ifndef COPENSSL_H
#define COPENSSL_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/pkcs12.h>
#include <openssl/pkcs7.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// Settings of an SSL_CTX.
static inline int c_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int c_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}
static inline void c_SSL_CTX_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }
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
static inline uint64_t c_SSL_OP_LEGACY_SERVER_CONNECT(void) { return SSL_OP_LEGACY_SERVER_CONNECT; }

// Settings and state of an SSL.
static inline int c_SSL_set_min_proto_version(SSL *ssl, int version) {
    return (int)SSL_set_min_proto_version(ssl, version);
}
static inline int c_SSL_set_max_proto_version(SSL *ssl, int version) {
    return (int)SSL_set_max_proto_version(ssl, version);
}
/// Returns the digest of the peer's signature of the handshake; `NID_undef` without one.
static inline int c_SSL_get_peer_signature_nid(SSL *ssl) {
    int digest = NID_undef;
    return SSL_get_peer_signature_nid(ssl, &digest) ? digest : NID_undef;
}
static inline int c_SSL_get_secure_renegotiation_support(SSL *ssl) {
    return (int)SSL_get_secure_renegotiation_support(ssl);
}
/// Returns the kind of key of the peer's signature of the handshake; `NID_undef` without one.
static inline int c_SSL_get_peer_signature_type_nid(SSL *ssl) {
    int kind = NID_undef;
    return SSL_get_peer_signature_type_nid(ssl, &kind) ? kind : NID_undef;
}
/// Returns the name of the key exchange's group; NULL without one. Before OpenSSL 3.2 only groups that have an object
/// identifier have a name.
static inline const char *c_SSL_get0_group_name(SSL *ssl) {
#if OPENSSL_VERSION_PREREQ(3, 2)
    return SSL_get0_group_name(ssl);
#else
    int group = (int)SSL_get_negotiated_group(ssl);
    return group <= 0 || (group & TLSEXT_nid_unknown) ? NULL : OBJ_nid2sn(group);
#endif
}
/// Returns the peer's ephemeral key, which the caller frees; NULL without one.
static inline EVP_PKEY *c_SSL_get_peer_tmp_key(SSL *ssl) {
    EVP_PKEY *key = NULL;
    return SSL_get_peer_tmp_key(ssl, &key) ? key : NULL;
}
static inline int c_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}
/// Returns when a session was created, in seconds since 1970. OpenSSL 3.3 replaced the function that returns a `long`.
static inline int64_t c_SSL_SESSION_get_time(const SSL_SESSION *session) {
#if OPENSSL_VERSION_PREREQ(3, 3)
    return SSL_SESSION_get_time_ex(session);
#else
    return SSL_SESSION_get_time(session);
#endif
}
static inline int c_ERR_reason(unsigned long code) { return ERR_GET_REASON(code); }
static inline int c_ERR_lib(unsigned long code) { return ERR_GET_LIB(code); }

// Callbacks in which the handshake waits for a decision, and stapled OCSP responses.
static inline int c_SSL_set_retry_verify(SSL *ssl) { return (int)SSL_set_retry_verify(ssl); }
static inline int c_SSL_CTX_set_tlsext_status_type(SSL_CTX *context, int type) {
    return (int)SSL_CTX_set_tlsext_status_type(context, type);
}
static inline void c_SSL_CTX_set_tlsext_status_cb(SSL_CTX *context, int (*callback)(SSL *, void *)) {
    SSL_CTX_set_tlsext_status_cb(context, callback);
}
static inline void c_SSL_CTX_set_tlsext_status_arg(SSL_CTX *context, void *argument) {
    SSL_CTX_set_tlsext_status_arg(context, argument);
}
static inline long c_SSL_get_tlsext_status_ocsp_resp(SSL *ssl, const unsigned char **bytes) {
    return SSL_get_tlsext_status_ocsp_resp(ssl, bytes);
}
/// Passes ownership of `bytes`, which must come from OpenSSL's allocator, to `ssl`.
static inline int c_SSL_set_tlsext_status_ocsp_resp(SSL *ssl, unsigned char *bytes, long count) {
    return (int)SSL_set_tlsext_status_ocsp_resp(ssl, bytes, count);
}
static inline void *c_OPENSSL_memdup(const void *bytes, size_t count) { return OPENSSL_memdup(bytes, count); }
static inline int c_sk_X509_NAME_num(const STACK_OF(X509_NAME) *stack) { return sk_X509_NAME_num(stack); }
static inline X509_NAME *c_sk_X509_NAME_value(const STACK_OF(X509_NAME) *stack, int index) {
    return sk_X509_NAME_value(stack, index);
}

// Certificate names.
static inline unsigned long c_name_flags(void) { return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB; }
static inline GENERAL_NAMES *c_X509_get0_alternative_names(const X509 *certificate) {
    return (GENERAL_NAMES *)X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
}
static inline int c_GENERAL_NAMES_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
/// Returns the kind of a name, with its bytes if it is text or an address.
static inline int c_GENERAL_NAMES_get(const GENERAL_NAMES *names, int index, const unsigned char **bytes, int *count) {
    int kind = -1;
    void *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, index), &kind);
    *bytes = NULL;
    *count = 0;
    if (value && (kind == GEN_DNS || kind == GEN_EMAIL || kind == GEN_URI || kind == GEN_IPADD)) {
        *bytes = ASN1_STRING_get0_data((ASN1_STRING *)value);
        *count = ASN1_STRING_length((ASN1_STRING *)value);
    }
    return kind;
}

// The addresses of a certificate's issuer (RFC 5280 4.2.2.1), and files with certificates.
static inline AUTHORITY_INFO_ACCESS *c_X509_get_info_access(const X509 *certificate) {
    return (AUTHORITY_INFO_ACCESS *)X509_get_ext_d2i(certificate, NID_info_access, NULL, NULL);
}
static inline int c_info_access_count(const AUTHORITY_INFO_ACCESS *all) { return sk_ACCESS_DESCRIPTION_num(all); }
/// Returns whether an entry is the address of the issuer's certificate, with the bytes of its URI.
static inline int c_info_access_issuer(
    const AUTHORITY_INFO_ACCESS *all, int index, const unsigned char **bytes, int *count) {
    const ACCESS_DESCRIPTION *entry = sk_ACCESS_DESCRIPTION_value(all, index);
    if (OBJ_obj2nid(entry->method) != NID_ad_ca_issuers || entry->location->type != GEN_URI) return 0;
    *bytes = ASN1_STRING_get0_data(entry->location->d.uniformResourceIdentifier);
    *count = ASN1_STRING_length(entry->location->d.uniformResourceIdentifier);
    return 1;
}
/// Returns the certificates of a signed message, which belong to it; NULL for other messages.
static inline STACK_OF(X509) *c_PKCS7_certificates(const PKCS7 *message) {
    return PKCS7_type_is_signed(message) && message->d.sign ? message->d.sign->cert : NULL;
}

// Lists of certificates, and certificate stores.
static inline STACK_OF(X509) *c_sk_X509_new(void) { return sk_X509_new_null(); }
static inline int c_sk_X509_push(STACK_OF(X509) *stack, X509 *certificate) { return sk_X509_push(stack, certificate); }
static inline void c_sk_X509_free(STACK_OF(X509) *stack) { sk_X509_pop_free(stack, X509_free); }
static inline int c_sk_X509_num(const STACK_OF(X509) *stack) { return sk_X509_num(stack); }
static inline X509 *c_sk_X509_value(const STACK_OF(X509) *stack, int index) { return sk_X509_value(stack, index); }
/// Sets a chain of `count` certificates as if `store` had built it.
static inline int c_X509_STORE_CTX_set_chain(X509_STORE_CTX *store, X509 *const *certificates, int count) {
    STACK_OF(X509) *chain = sk_X509_new_null();
    for (int i = 0; chain && i < count; i++) {
        if (X509_up_ref(certificates[i]) && sk_X509_push(chain, certificates[i]) > 0) continue;
        sk_X509_pop_free(chain, X509_free);
        return 0;
    }
    if (!chain) return 0;
    X509_STORE_CTX_set0_verified_chain(store, chain);
    return 1;
}
/// Adds every certificate that `from` holds in memory to `to`.
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
/// Whether `path` is a directory as created by `openssl rehash`: with names like `5ed36f99.0`.
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

// Keys and memory BIOs, for certificates that tests make at run time.
static inline EVP_PKEY *c_EVP_EC_gen(const char *curve) { return EVP_EC_gen(curve); }
static inline EVP_PKEY *c_EVP_RSA_gen(int bits) { return EVP_RSA_gen(bits); }
static inline long c_BIO_get_mem_data(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }

#endif
