// SPDX-License-Identifier: Apache-2.0

// The resume data of the classic API for an interrupted upload: the request, the source and the location of the upload,
// because `uploadTask(withResumeData:)` has no other parameter. An `UploadToken` contains less: its caller supplies the
// request and the source.

package import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The resume data of an upload task, for this process or another on this machine.
package struct UploadTicket: Sendable {
    /// The source of the content.
    package enum Source: Sendable {
        /// These bytes, which are stored in ``UploadTicket/data``.
        case data(Data)
        /// A file, which must not have changed.
        case file(URL)
        /// A body that the delegate provides.
        case provided
    }

    /// The method, the URL and the network options of the request, and those of its fields that cannot be secrets.
    package let request: Request
    package let source: Source
    let place: URL
    /// The length of the content; `nil` if unknown.
    let length: Int64?
    /// The identity of a file.
    let identity: UploadIdentity?

    init(_ request: Request, _ source: Source, place: URL, length: Int64?, identity: UploadIdentity?) {
        var kept = Request(url: request.url.withoutUserinfo, method: request.method)
        for field in request.headers where Self.harmless.contains(field.name) {
            kept.headers.append(field.name, field.value)
        }
        (kept.idleTimeout, kept.handlesCookies, kept.trafficClass) = (
            request.idleTimeout, request.handlesCookies, request.trafficClass
        )
        kept.contentDecoding = request.contentDecoding
        kept.allowsCellularAccess = request.allowsCellularAccess
        kept.allowsExpensiveNetworkAccess = request.allowsExpensiveNetworkAccess
        kept.allowsConstrainedNetworkAccess = request.allowsConstrainedNetworkAccess
        (self.request, self.source, self.place) = (kept, source, place)
        (self.length, self.identity) = (length, identity)
    }

    /// The fields that are kept: any other field may be a secret.
    private static let harmless: [FieldName] = [.accept, .acceptEncoding, .acceptLanguage, .userAgent]

    // MARK: As bytes

    private static let version = "URLLoading-Upload/1"

    private struct Record: Codable {
        var url: String
        var method: String
        /// Names and values of the fields.
        var fields: [[String]]
        var place: String
        var length: Int64?
        var path: String?
        var modified: Int64?
        var ends: String?
        /// True if the content follows.
        var hasContent: Bool
        var manner: Manner
    }

    /// The network options of the request.
    private struct Manner: Codable {
        /// The idle timeout in milliseconds.
        var idle: Int64?
        var cookies: Bool
        var traffic: UInt8?
        var cellular: Bool?
        var expensive: Bool?
        var constrained: Bool?

        init(_ request: Request) {
            idle = request.idleTimeout.map { LoadHandle.nanoseconds($0) / 1_000_000 }
            (cookies, traffic) = (request.handlesCookies, request.trafficClass?.dscp)
            (cellular, expensive) = (request.allowsCellularAccess, request.allowsExpensiveNetworkAccess)
            constrained = request.allowsConstrainedNetworkAccess
        }

        func apply(to request: inout Request) {
            request.idleTimeout = idle.map { .milliseconds(max(1, $0)) }
            (request.handlesCookies, request.trafficClass) = (cookies, traffic.map { TrafficClass(dscp: $0) })
            (request.allowsCellularAccess, request.allowsExpensiveNetworkAccess) = (cellular, expensive)
            request.allowsConstrainedNetworkAccess = constrained
        }
    }

    /// The bytes that ``init(_:)`` parses: a version, a digest, a record on one line, and the content if it is in
    /// memory.
    package var data: Data {
        var content = Data()
        if case .data(let data) = source { content = data }
        let record = Record(
            url: request.url.absoluteString, method: request.method.rawValue,
            fields: request.headers.map { [$0.name.description, $0.value] }, place: place.absoluteString,
            length: length,
            path: identity?.path, modified: identity?.modified, ends: identity?.digest, hasContent: source.isData,
            manner: Manner(request))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // The record has strings and numbers only, so its encoding cannot fail.
        let line = (try? encoder.encode(record)) ?? Data()
        return Data("\(Self.version)\n\(Self.check(line, content))\n".utf8) + line + Data("\n".utf8) + content
    }

    /// - Throws: ``LoadError/Reason/invalidResumeToken`` for bytes that do not come from ``data``.
    package init(_ data: Data) throws(LoadError) {
        let lines = data.split(separator: UInt8(ascii: "\n"), maxSplits: 3, omittingEmptySubsequences: false)
        guard lines.count == 4, lines[0].elementsEqual(Self.version.utf8) else {
            throw ResumeToken.refused("not the resume data of an upload")
        }
        let content = Data(lines[3])
        guard lines[1].elementsEqual(Self.check(lines[2], content).utf8) else { throw ResumeToken.refused("damaged") }
        guard let record = try? JSONDecoder().decode(Record.self, from: Data(lines[2])),
            let made = Self(record, content)
        else {
            throw ResumeToken.refused("the content of the token is invalid")
        }
        self = made
    }

    private init?(_ record: Record, _ content: Data) {
        guard let url = URL(string: record.url), let place = URL(string: record.place), !record.method.isEmpty else {
            return nil
        }
        var request = Request(url: url, method: Method(record.method))
        // The upload's location gets the request's credentials, so it must have the request's origin.
        guard Request(url: place).goes(where: request), record.fields.allSatisfy({ $0.count == 2 }),
            record.length ?? 0 >= 0
        else { return nil }
        for field in record.fields { request.headers.append(FieldName(field[0]), field[1]) }
        record.manner.apply(to: &request)
        request.contentDecoding = .always
        let (source, identity): (Source, UploadIdentity?)
        if record.hasContent {
            guard record.length == Int64(content.count) else { return nil }
            (source, identity) = (.data(content), nil)
        } else if let path = record.path {
            guard path.hasPrefix("/"), let length = record.length, let ends = record.ends, record.modified != nil else {
                return nil
            }
            source = .file(URL(filePath: path))
            identity = UploadIdentity(length: length, modified: record.modified, digest: ends, path: path)
        } else {
            (source, identity) = (.provided, nil)
        }
        self.init(request, source, place: place, length: record.length, identity: identity)
    }

    /// Returns the checksum, which detects damage, not forgery: a forger could make the contained request without the
    /// ticket.
    private static func check(_ line: some DataProtocol, _ content: Data) -> String {
        let digest = Digest()
        for region in line.regions { region.withUnsafeBytes { digest.update($0) } }
        content.withUnsafeBytes { digest.update($0) }
        return digest.finish()
    }
}

extension UploadTicket.Source {
    var isData: Bool { if case .data = self { true } else { false } }

    /// Returns the request body for a range; a provided body is requested at its offset.
    func body(_ range: Range<Int64>) -> RequestBody {
        switch self {
        case .data(let data): UploadSource.data(data).body(range)
        case .file(let url): UploadSource.file(url).body(range)
        case .provided: .provided
        }
    }

    var length: Int64? { if case .data(let data) = self { Int64(data.count) } else { nil } }
}
