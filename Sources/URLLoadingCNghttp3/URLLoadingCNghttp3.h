// SPDX-License-Identifier: Apache-2.0

// nghttp3, for builds with the trait HTTP3; see URLLoadingCNgtcp2.h.
#ifndef CNGHTTP3_H
#define CNGHTTP3_H

#if !__has_include(<nghttp3/nghttp3.h>)
#error "HTTP/3 needs nghttp3 1.15 or later: install libnghttp3-dev"
#else
#include <nghttp3/nghttp3.h>

#if NGHTTP3_VERSION_NUM < 0x010f00
#error "HTTP/3 needs nghttp3 1.15 or later"
#endif

static inline void c_nghttp3_settings_default(nghttp3_settings *settings) { nghttp3_settings_default(settings); }
static inline int c_nghttp3_conn_client_new(
    nghttp3_conn **made, const nghttp3_callbacks *callbacks, const nghttp3_settings *settings, void *context) {
    return nghttp3_conn_client_new(made, callbacks, settings, NULL, context);
}
static inline int c_nghttp3_conn_server_new(
    nghttp3_conn **made, const nghttp3_callbacks *callbacks, const nghttp3_settings *settings, void *context) {
    return nghttp3_conn_server_new(made, callbacks, settings, NULL, context);
}

#endif
#endif
