// SPDX-License-Identifier: Apache-2.0

// Media types of files by file name extension: the common ones, as registered with IANA. No charset is declared,
// because a file does not state one.

import URLLoadingWire

enum FileTypes {
    static func mediaType(ofName name: String) -> MediaType? {
        let suffix = name.split(separator: ".").dropFirst().last.map { $0.lowercased() }
        return MediaType(suffix.flatMap { byExtension[$0] } ?? "application/octet-stream")
    }

    /// Returns the usual extension of a media type without parameters; `nil` for an unknown type.
    static func fileExtension(of type: String) -> String? {
        let type = type.lowercased()
        if let usual = usualExtensions[type] { return usual }
        return byExtension.filter { $0.value == type }.keys.min()
    }

    /// The usual extensions of types with several.
    private static let usualExtensions = [
        "text/html": "html", "image/jpeg": "jpg", "text/javascript": "js", "audio/ogg": "ogg", "text/plain": "txt",
        "image/tiff": "tiff", "application/yaml": "yaml",
    ]

    private static let byExtension = [
        "avif": "image/avif", "bz2": "application/x-bzip2", "css": "text/css", "csv": "text/csv", "gif": "image/gif",
        "gz": "application/gzip", "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon",
        "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json",
        "jsonl": "application/jsonl", "md": "text/markdown", "mjs": "text/javascript", "mp3": "audio/mpeg",
        "mp4": "video/mp4", "oga": "audio/ogg", "ogg": "audio/ogg", "pdf": "application/pdf", "png": "image/png",
        "svg": "image/svg+xml", "swift": "text/plain", "tar": "application/x-tar", "tif": "image/tiff",
        "tiff": "image/tiff", "toml": "application/toml", "txt": "text/plain", "wasm": "application/wasm",
        "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp", "woff2": "font/woff2",
        "xhtml": "application/xhtml+xml",
        "xml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip",
        "zst": "application/zstd",
    ]
}
