// SPDX-License-Identifier: Apache-2.0

// In this folder: the HTTP Archive (HAR)

// The types of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/). Fields that the format requires are not
// optional here. Fields that begin with an underscore are extensions, which the format allows.

import FoundationEssentials

struct HAR: Encodable, Sendable {
    let log: Log

    struct Log: Encodable, Sendable {
        let version = "1.2"
        let creator: Tool
        let entries: [Entry]

        private enum CodingKeys: CodingKey { case version, creator, entries }
    }

    struct Tool: Encodable, Sendable {
        let name: String
        let version: String
    }

    struct Entry: Encodable, Sendable {
        let began: Date
        let startedDateTime: String
        let time: Double
        let request: Request
        let response: Response
        let cache = Cache()
        let timings: HARTimings
        let serverIPAddress: String?
        let connection: String?

        private enum CodingKeys: CodingKey {
            case startedDateTime, time, request, response, cache, timings, serverIPAddress, connection
        }
    }

    /// Always empty: cache data is not recorded.
    struct Cache: Encodable, Sendable {}

    struct Request: Encodable, Sendable {
        let method: String
        let url: String
        let httpVersion: String
        let cookies: [Cookie]
        let headers: [Pair]
        let queryString: [Pair]
        let headersSize: Int64
        let bodySize: Int64
    }

    struct Response: Encodable, Sendable {
        let status: Int
        let statusText: String
        let httpVersion: String
        let cookies: [Cookie]
        let headers: [Pair]
        let content: Content
        let redirectURL: String
        let headersSize: Int64
        let bodySize: Int64
        let _error: String?
        /// The rules that the response breaks, as `bareLineFeed (RFC 9112 §2.2)`; absent without one.
        let _violations: [String]?
        /// Absent without TLS.
        let _tls: TLS?
    }

    struct TLS: Encodable, Sendable {
        let version: String
        let cipherSuite: String?
        let keyExchangeGroup: String?
        let isPostQuantum: Bool?
        let signatureAlgorithm: String?

        /// `nil` without TLS.
        init?(_ transaction: LoadMetrics.Transaction) {
            guard let version = transaction.tlsVersion else { return nil }
            self.version = "\(version.rawValue / 10).\(version.rawValue % 10)"
            (cipherSuite, keyExchangeGroup) = (transaction.cipherSuite, transaction.keyExchangeGroup)
            (isPostQuantum, signatureAlgorithm) = (transaction.isPostQuantum, transaction.signatureAlgorithm)
        }
    }

    struct Content: Encodable, Sendable {
        let size: Int64
        let compression: Int64?
        let mimeType: String
    }

    struct Pair: Encodable, Sendable {
        let name: String
        let value: String
    }

    struct Cookie: Encodable, Sendable {
        let name: String
        let value: String
        var path: String?
        var domain: String?
        var expires: String?
        var httpOnly: Bool?
        var secure: Bool?
    }

    /// Returns a date in the format of HAR: ISO 8601 with milliseconds and a time zone.
    static func text(_ date: Date) -> String { Date.ISO8601FormatStyle(includingFractionalSeconds: true).format(date) }
}
