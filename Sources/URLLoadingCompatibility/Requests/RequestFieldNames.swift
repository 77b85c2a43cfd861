// The names of HTTP's own request fields as they are usually written. Programs look their fields up in a dictionary, where
// case counts.

import URLLoadingWire

enum RequestFieldNames {
    /// `Content-Type` for `content-TYPE`; `nil` for a name that is not of HTTP itself.
    static func usualSpelling(of field: String) -> String? {
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
