// SPDX-License-Identifier: Apache-2.0

// In this folder: what crosses to the agent, encoded

// The serialised order for a transfer by the background agent. Its fields are named, so that older and newer builds
// understand each other.

package import FoundationEssentials
package import URLLoadingIO
import URLLoadingWire

/// The order for one transfer, without its secrets.
package struct TransferOrder: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable { case download, upload }

    package var kind: Kind
    /// The URL for listings, without userinfo and the values of secret parameters. ``TransferSecrets`` has the whole
    /// URL.
    package var shownURL: String
    package var method: String
    /// The fields that are never secret.
    package var fields: [[String]]
    package var overrides = RequestSettings()
    /// The caller's name for the transfer.
    package var label = ""
    /// The caller's data, at most ``maximumUserData`` bytes.
    package var userData = Data()

    /// The destination path of a download; `nil` keeps the file with the agent until its delivery.
    package var destination: String?
    /// The identity of the destination folder as the program sees it.
    package var destinationFolder: FilePlace?
    package var replaces = true
    package var permissions: UInt16?
    /// The permissions that the program gives to new files, for a destination that replaces no file.
    package var permissionsOfNewFiles: UInt16?
    package var requiresSuccess = false
    /// The text of the digest that the file must have.
    package var digest: String?
    /// The text of how many parts of the file are loaded at once.
    package var parallelRanges: String?

    /// The path of the file to upload.
    package var source: String?
    package var sourceStamp: SourceStamp?
    /// Whether the agent sends a copy of the file that it makes when it accepts the transfer.
    package var copiesSource: Bool?

    /// The priority, 0 to 255; greater values are served first.
    package var priority = Self.usualPriority
    package static let usualPriority: UInt8 = 25
    /// The earliest time of sending, in nanoseconds since 1970.
    package var earliestBegin: Int64?
    package var isDiscretionary = false
    /// Transfers of the identifier with the same affinity are carried out by one agent while it lives.
    package var affinity: String?
    /// The resume data of a download (``ResumeToken/data``).
    package var resumption: Data?
    /// The time of creation, in nanoseconds since 1970.
    package var created: Int64
    /// What of the program decides about challenges; `nil` if default handling does.
    package var challenges: ChallengeAuthority?

    package static let maximumUserData = 64 * 1024
    /// The bytes of an affinity, which is a part of an index.
    package static let maximumAffinity = 256
}

/// The secrets of a transfer, stored separately and erased with it.
package struct TransferSecrets: Codable, Sendable, Equatable {
    package var url: String
    package var fields: [[String]]

    package init(url: String, fields: [[String]]) { (self.url, self.fields) = (url, fields) }
}

/// The identity of the file to upload: a file that has replaced it is not sent.
package struct SourceStamp: Codable, Sendable, Equatable {
    package var place: FilePlace
    package var size: Int64
    /// The modification time, in nanoseconds since 1970.
    package var modified: Int64
}

/// The settings of a request that differ from those of its session.
package struct RequestSettings: Codable, Sendable, Equatable {
    package var idleTimeout: Duration?
    package var resourceTimeout: Duration?
    package var connectTimeout: Duration?
    package var allowsCellular: Bool?
    package var allowsExpensive: Bool?
    package var allowsConstrained: Bool?
    package var trafficClass: UInt8?
    package var handlesCookies = true
    package var mainDocument: String?
}

extension TransferOrder {
    /// Fields whose values are never secret. All others are stored as secrets.
    package static let harmlessFields: Set<FieldName> = [
        .accept, .acceptEncoding, .acceptLanguage, .userAgent, .contentType, "Content-Language", "Content-Disposition",
        .contentEncoding, .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, "If-Unmodified-Since",
        .cacheControl, "Prefer", "Idempotency-Key", "Date", "Origin",
    ]

    /// Creates an order from a request.
    package init(_ kind: Kind, _ request: Request, created: Int64) {
        let fields = request.headers.map { ($0.name, $0.value) }
        self.init(
            kind: kind, shownURL: request.url.withoutSecrets, method: request.method.rawValue,
            fields: fields.filter { Self.harmlessFields.contains($0.0) }.map { [$0.0.description, $0.1] },
            created: created)
        overrides.idleTimeout = request.idleTimeout
        overrides.resourceTimeout = request.resourceTimeout
        overrides.connectTimeout = request.connectTimeout
        overrides.allowsCellular = request.allowsCellularAccess
        overrides.allowsExpensive = request.allowsExpensiveNetworkAccess
        overrides.allowsConstrained = request.allowsConstrainedNetworkAccess
        overrides.trafficClass = request.trafficClass?.dscp
        overrides.handlesCookies = request.handlesCookies
        overrides.mainDocument = request.mainDocumentURL?.absoluteString
    }

    /// Returns the request with its secrets; `nil` if its URL is invalid.
    package func request(_ secrets: TransferSecrets) -> Request? {
        guard let url = URL(string: secrets.url), !method.isEmpty else { return nil }
        var request = Request(url: url, method: Method(method))
        for field in fields + secrets.fields where field.count == 2 {
            request.headers.append(FieldName(field[0]), field[1])
        }
        request.idleTimeout = overrides.idleTimeout
        request.resourceTimeout = overrides.resourceTimeout
        request.connectTimeout = overrides.connectTimeout
        request.allowsCellularAccess = overrides.allowsCellular
        request.allowsExpensiveNetworkAccess = overrides.allowsExpensive
        request.allowsConstrainedNetworkAccess = overrides.allowsConstrained
        request.trafficClass = overrides.trafficClass.map { TrafficClass(dscp: $0) }
        request.handlesCookies = overrides.handlesCookies
        request.mainDocumentURL = overrides.mainDocument.flatMap { URL(string: $0) }
        return request
    }

    package var isIdempotent: Bool {
        Method(method).isIdempotent
            || fields.contains { FieldName($0.first ?? "") == "Idempotency-Key" }
    }
}

extension TransferSecrets {
    package init(_ request: Request) {
        // The agent sends a file, and states its length itself.
        let replaced: [FieldName] = request.framingFields == .replaced ? [.contentLength, .transferEncoding] : []
        let fields = request.headers.filter {
            !TransferOrder.harmlessFields.contains($0.name) && !replaced.contains($0.name)
        }
        self.init(url: request.url.absoluteString, fields: fields.map { [$0.name.description, $0.value] })
    }
}

extension SourceStamp {
    /// Identifies the file at a path, following links; `nil` without one.
    package init?(path: String) {
        guard let place = FilePlace(path), let reader = try? FileReader(path: path), reader.kind == .file else {
            return nil
        }
        self.init(place: place, size: reader.size, modified: reader.modified)
    }
}
