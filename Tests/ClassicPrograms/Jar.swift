// SPDX-License-Identifier: Apache-2.0

// A program that keeps cookies for its next run, in the place of its library's choice.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

func runJar(_ origin: URL) {
    let storage = HTTPCookieStorage.shared
    let end = Date(timeIntervalSinceNow: 86400)
    for (name, domain, isSecure) in [
        ("host", "example.org", false), ("wide", ".example.net", true), ("suffix", ".co.uk", false),
    ] {
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: name, .value: "v", .domain: domain, .path: "/", .expires: end,
        ]
        if isSecure { properties[.secure] = "TRUE" }
        if let cookie = HTTPCookie(properties: properties) { storage.setCookie(cookie) }
    }
    Check.that("cookies are kept", (storage.cookies?.count ?? 0) >= 2, storage.cookies as Any)
}
