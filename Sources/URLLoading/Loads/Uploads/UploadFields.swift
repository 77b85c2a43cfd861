// SPDX-License-Identifier: Apache-2.0

// The fields of resumable uploads, read and written: draft-ietf-httpbis-resumable-upload-12, cited below
// as "draft" with its sections.

import URLLoadingWire

extension FieldName {
    /// The number of bytes the server has (draft §4.1.1).
    package static let uploadOffset = FieldName("Upload-Offset")
    /// Whether the request or the server has the last byte (draft §4.1.2).
    package static let uploadComplete = FieldName("Upload-Complete")
    /// The length of the whole content (draft §4.1.3).
    package static let uploadLength = FieldName("Upload-Length")
    /// The server's limits (draft §4.1.4).
    package static let uploadLimit = FieldName("Upload-Limit")
    /// Draft, "Draft Version Identification"; will be removed with the RFC.
    package static let uploadInteropVersion = FieldName("Upload-Draft-Interop-Version")
}

package enum ResumableUploads {
    /// The interop version of draft 12. A 104 of another version is ignored by either side.
    package static let interopVersion: Int64 = 9
    /// The media type of a part in a PATCH request (draft §6).
    package static let mediaType = "application/partial-upload"
    /// 104 (Upload Resumption Supported), draft §5.
    package static let statusCode = 104
}

/// The fields of a response about an upload. Malformed fields are ignored (draft §4.1).
struct UploadAnswer: Sendable {
    let status: Status
    let isComplete: Bool?
    let offset: Int64?
    let length: Int64?
    let limits: UploadLimits?
    let location: String?
    let retryAfter: RetryAfter?

    init(_ head: HTTPHead) {
        status = head.status
        let fields = head.headers
        isComplete = fields[.uploadComplete].flatMap(StructuredField.boolean)
        offset = fields[.uploadOffset].flatMap(StructuredField.integer).flatMap { $0 >= 0 ? $0 : nil }
        length = fields[.uploadLength].flatMap(StructuredField.integer).flatMap { $0 >= 0 ? $0 : nil }
        limits = fields[.uploadLimit].flatMap { UploadLimits($0) }
        location = fields.values(of: .location).first
        retryAfter = fields[.retryAfter].flatMap { RetryAfter($0) }
    }

    /// Parses an interim response of this draft; `nil` for others.
    init?(interim head: HTTPHead) {
        guard head.status.code == ResumableUploads.statusCode,
            head.headers[.uploadInteropVersion].flatMap(StructuredField.integer) == ResumableUploads.interopVersion
        else { return nil }
        self.init(head)
    }
}

/// The server's limits (draft §4.1.4), in bytes.
struct UploadLimits: Sendable, Equatable {
    var largest: Int64?
    var largestPart: Int64?
    var smallestPart: Int64?

    init() {}

    /// Returns `nil` if the field must be ignored as a whole.
    init?(_ text: String) {
        guard let members = StructuredField.integers(text) else { return nil }
        (largest, largestPart, smallestPart) = (
            members["max-size"], members["max-append-size"], members["min-append-size"]
        )
        guard [largest, largestPart, smallestPart].allSatisfy({ $0 ?? 0 >= 0 }) else { return nil }
    }

    /// Returns the end of a part that begins at `offset`; `nil` if the server accepts no part size.
    /// - Parameter wanted: the part size the caller has set.
    func end(of offset: Int64, length: Int64, wanted: Int64?) -> Int64? {
        // A part below the minimum is accepted only as the last one.
        var size = max(wanted ?? .max, smallestPart ?? 0)
        size = min(size, largestPart ?? .max)
        guard length - offset > size else { return length }
        return size > 0 && size >= smallestPart ?? 0 ? offset + size : nil
    }
}
