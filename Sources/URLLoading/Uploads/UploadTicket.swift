// What the classic shape keeps of an upload that was interrupted: the request, the source and the place of the upload in
// one, for there is nothing else to resume with (`uploadTask(withResumeData:)`). An `UploadToken` is less: its caller
// brings request and source along.

package import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// With what an upload task goes on, here or in another process of this machine.
package struct UploadTicket: Sendable {
    /// Where the content comes from.
    package enum Source: Sendable {
        /// Goes into ``UploadTicket/data``.
        case data(Data)
        /// Must still be what it was.
        case file(URL)
        /// Somebody is asked for it.
        case provided
    }

    /// Its method and URL, and over which networks and how it goes; of its fields those that cannot be secrets.
    package let request: Request
    package let source: Source
    let place: URL
    /// `nil` if nobody knows.
    let length: Int64?
    /// Of a file.
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

    /// Of other fields nobody can say that they are no secrets.
    private static let harmless: [FieldName] = [.accept, .acceptEncoding, .acceptLanguage, .userAgent]

    // MARK: As bytes

    private static let version = "URLLoading-Upload/1"

    private struct Record: Codable {
        var url: String
        var method: String
        /// Names and values.
        var fields: [[String]]
        var place: String
        var length: Int64?
        var path: String?
        var modified: Int64?
        var ends: String?
        /// The content follows.
        var hasContent: Bool
        var manner: Manner
    }

    /// How the request goes.
    private struct Manner: Codable {
        /// Milliseconds.
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

    /// What ``init(_:)`` reads: a version, a digest, a record in one line, and the content if it is in memory.
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
        // Strings and numbers alone: nothing that could not be encoded.
        let line = (try? encoder.encode(record)) ?? Data()
        return Data("\(Self.version)\n\(Self.check(line, content))\n".utf8) + line + Data("\n".utf8) + content
    }

    /// - Throws: ``LoadError/Reason/invalidResumeToken`` for what ``data`` did not give.
    package init(_ data: Data) throws(LoadError) {
        let lines = data.split(separator: UInt8(ascii: "\n"), maxSplits: 3, omittingEmptySubsequences: false)
        guard lines.count == 4, lines[0].elementsEqual(Self.version.utf8) else {
            throw ResumeToken.refused("not what an upload is resumed with")
        }
        let content = Data(lines[3])
        guard lines[1].elementsEqual(Self.check(lines[2], content).utf8) else { throw ResumeToken.refused("damaged") }
        guard let record = try? JSONDecoder().decode(Record.self, from: Data(lines[2])),
            let made = Self(record, content)
        else {
            throw ResumeToken.refused("its content makes no sense")
        }
        self = made
    }

    private init?(_ record: Record, _ content: Data) {
        guard let url = URL(string: record.url), let place = URL(string: record.place), !record.method.isEmpty else {
            return nil
        }
        var request = Request(url: url, method: Method(record.method))
        // Credentials go where the upload lies: to whom the request names, and to nobody else.
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

    /// Against accidents, not against forgers: who forges one could as well make the request it stands for.
    private static func check(_ line: some DataProtocol, _ content: Data) -> String {
        let digest = Digest()
        for region in line.regions { region.withUnsafeBytes { digest.update($0) } }
        content.withUnsafeBytes { digest.update($0) }
        return digest.finish()
    }
}

extension UploadTicket.Source {
    var isData: Bool { if case .data = self { true } else { false } }

    /// What is sent of it; a demanded one is asked for at its offset.
    func body(_ range: Range<Int64>) -> RequestBody {
        switch self {
        case .data(let data): UploadSource.data(data).body(range)
        case .file(let url): UploadSource.file(url).body(range)
        case .provided: .provided
        }
    }

    var length: Int64? { if case .data(let data) = self { Int64(data.count) } else { nil } }
}
