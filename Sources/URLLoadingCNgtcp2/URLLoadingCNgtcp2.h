// SPDX-License-Identifier: Apache-2.0

// ngtcp2 and its helper for OpenSSL, for builds with the trait HTTP3. Swift cannot see the macros of ngtcp2, which pass
// the version of each structure to the functions `…_versioned`; those used here are wrapped by inline functions with
// the prefix `c_`.
#ifndef CNGTCP2_H
#define CNGTCP2_H

#if !__has_include(<openssl/opensslv.h>)
#error "HTTP/3 needs OpenSSL 3.5.1 or later: install libssl-dev"
#elif !__has_include(<ngtcp2/ngtcp2_crypto_ossl.h>)
#error "HTTP/3 needs ngtcp2 1.22 or later: install libngtcp2-dev and libngtcp2-crypto-ossl-dev"
#else
#include <openssl/opensslv.h>
#include <stdbool.h>
#include <stdint.h>
// Earlier versions have no interface for another QUIC, or faults in it.
#if OPENSSL_VERSION_NUMBER < 0x30500010L
#error "HTTP/3 needs OpenSSL 3.5.1 or later; this is an older one. Build without the trait HTTP3, or on a later system"
#endif

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

// From ngtcp2_crypto_ossl.h, which includes all of OpenSSL: not for everything that imports this module.
struct ssl_st;
int ngtcp2_crypto_ossl_init(void);
typedef struct ngtcp2_crypto_ossl_ctx ngtcp2_crypto_ossl_ctx;
int ngtcp2_crypto_ossl_ctx_new(ngtcp2_crypto_ossl_ctx **made, struct ssl_st *ssl);
void ngtcp2_crypto_ossl_ctx_del(ngtcp2_crypto_ossl_ctx *context);
int ngtcp2_crypto_ossl_configure_server_session(struct ssl_st *ssl);
int ngtcp2_crypto_ossl_configure_client_session(struct ssl_st *ssl);

#if NGTCP2_VERSION_NUM < 0x011600
#error "HTTP/3 needs ngtcp2 1.22 or later"
#endif

static inline void c_ngtcp2_settings_default(ngtcp2_settings *settings) { ngtcp2_settings_default(settings); }
static inline void c_ngtcp2_transport_params_default(ngtcp2_transport_params *parameters) {
    ngtcp2_transport_params_default(parameters);
}
static inline int c_ngtcp2_conn_client_new(
    ngtcp2_conn **made, const ngtcp2_cid *destination, const ngtcp2_cid *source, const ngtcp2_path *path,
    const ngtcp2_callbacks *callbacks, const ngtcp2_settings *settings, const ngtcp2_transport_params *parameters,
    void *context) {
    return ngtcp2_conn_client_new(
        made, destination, source, path, NGTCP2_PROTO_VER_V1, callbacks, settings, parameters, NULL, context);
}
static inline int c_ngtcp2_conn_server_new(
    ngtcp2_conn **made, const ngtcp2_cid *destination, const ngtcp2_cid *source, const ngtcp2_path *path,
    uint32_t version, const ngtcp2_callbacks *callbacks, const ngtcp2_settings *settings,
    const ngtcp2_transport_params *parameters, void *context) {
    return ngtcp2_conn_server_new(
        made, destination, source, path, version, callbacks, settings, parameters, NULL, context);
}
/// - ecn: the mark of the datagram's IP packet (RFC 3168).
static inline int c_ngtcp2_conn_read_pkt(
    ngtcp2_conn *connection, const ngtcp2_path *path, uint8_t ecn, const uint8_t *bytes, size_t count,
    ngtcp2_tstamp now) {
    ngtcp2_pkt_info info = {.ecn = ecn};
    return ngtcp2_conn_read_pkt(connection, path, &info, bytes, count, now);
}
static inline ngtcp2_ssize c_ngtcp2_conn_writev_stream(
    ngtcp2_conn *connection, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *bytes, size_t count,
    ngtcp2_ssize *taken, uint32_t flags, int64_t stream, const ngtcp2_vec *data, size_t data_count, ngtcp2_tstamp now) {
    return ngtcp2_conn_writev_stream(
        connection, path, info, bytes, count, taken, flags, stream, data, data_count, now);
}
/// Writes packets of one size, `packet_size`, of which the last may be smaller, and of one path, which is copied to
/// `path`: as many as there is room for, or one. ngtcp2 may write a packet that asks for another path first, and those
/// of the present one behind it.
static inline ngtcp2_ssize c_ngtcp2_conn_write_packets(
    ngtcp2_conn *connection, ngtcp2_path *path, uint8_t *ecn, uint8_t *bytes, size_t count, size_t *packet_size,
    ngtcp2_write_pkt write, bool only_one, ngtcp2_tstamp now) {
    ngtcp2_pkt_info info = {.ecn = NGTCP2_ECN_NOT_ECT};
    ngtcp2_ssize written =
        ngtcp2_conn_write_aggregate_pkt2(
            connection, path, &info, bytes, count, packet_size, write, only_one ? 1 : 0, now);
    *ecn = info.ecn;
    return written;
}
static inline ngtcp2_ssize c_ngtcp2_conn_write_connection_close(
    ngtcp2_conn *connection, uint8_t *bytes, size_t count, const ngtcp2_ccerr *reason, ngtcp2_tstamp now) {
    ngtcp2_pkt_info info = {.ecn = NGTCP2_ECN_NOT_ECT};
    return ngtcp2_conn_write_connection_close(connection, NULL, &info, bytes, count, reason, now);
}
/// ngtcp2 tells neither by a callback nor by a query that the peer has sent STOP_SENDING, only by the result of a
/// write, before it looks at what is written: here a length that it refuses.
static inline bool c_ngtcp2_conn_takes_bytes(ngtcp2_conn *connection, int64_t stream) {
    ngtcp2_vec impossible = {.base = NULL, .len = SIZE_MAX};
    ngtcp2_ssize result =
        ngtcp2_conn_writev_stream(connection, NULL, NULL, NULL, 0, NULL, 0, stream, &impossible, 1, 0);
    return result != NGTCP2_ERR_STREAM_SHUT_WR && result != NGTCP2_ERR_STREAM_NOT_FOUND;
}
static inline void c_ngtcp2_conn_get_conn_info(ngtcp2_conn *connection, ngtcp2_conn_info *info) {
    ngtcp2_conn_get_conn_info(connection, info);
}

#endif
#endif
