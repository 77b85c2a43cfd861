// SPDX-License-Identifier: Apache-2.0

// The usual spelling of HTTP's request fields. Programs look up their fields in a dictionary, whose keys are
// case-sensitive.

import URLLoadingWire

enum RequestFieldNames {
    /// Returns `Content-Type` for `content-TYPE`; `nil` for a field that HTTP does not define.
    static func canonicalSpelling(of field: String) -> String? {
        known.firstIndex(of: FieldName(field)).map { known[$0].description }
    }

    private static let known: Set<FieldName> = [
        "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control",
        "Connection",
        "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length", "Content-Location",
        "Content-Range",
        "Content-Type", "Cookie", "Date", "Expect", "From", "Host", "If-Match", "If-Modified-Since", "If-None-Match",
        "If-Range",
        "If-Unmodified-Since", "Origin", "Pragma", "Proxy-Authorization", "Range", "Referer", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade", "User-Agent", "Via",
    ]
}
