// SPDX-License-Identifier: Apache-2.0

// The owner and the source of an answer, as a value that its exchange carries. Concurrent requests of one load share no
// state through it.

import Synchronization
import URLLoadingIO

/// The identity that a request carried beyond the fields of its caller.
struct CarriedIdentity: Sendable {
    /// The login of the Authorization field, or of the connection; `nil` without one.
    var login: Login?
    /// The Cookie field holds cookies of the session's store.
    var hasCookies = false
    /// What the sign decision has added to the request.
    var signature = SignatureUse.none
}

/// What a signature has added to a request.
enum SignatureUse: Sendable {
    case none
    /// The Authorization field, among others: no other credential can stand beside it.
    case authorization
    /// Other fields, or query items.
    case other
}

/// The facts that an exchange with a server reports to the cache beside the response's head.
struct Provenance: Sendable {
    var carried = CarriedIdentity()
    /// The client authenticated with a certificate.
    var hasCertificate = false
    /// The server is trusted only because a decision of the caller said so.
    var isForced = false
    /// The number of the session's TLS settings that the connection was made with; `nil` without TLS.
    var settingsNumber: Int?
    var bodyEnd = BodyEnd.marked
    /// The digest of the server's certificate; `nil` without TLS.
    var server: String?
    var source = AnswerSource.unknown
    /// The configuration's own resolver or proxies led to the server.
    var isPrivatelyRouted = false
    /// The response breaks rules, so another recipient may read it differently.
    var isRepaired = false

    /// How the end of a body is known (RFC 9112 §6.3).
    enum BodyEnd: Sendable {
        /// By a length, the chunked coding or a frame; or the response has no body.
        case marked
        /// By the end of the connection.
        case connection
        /// By the end of the connection, with or without close_notify.
        case concededConnection
    }
}

/// The owner of an answer, in the marks that a stored response keeps (`CacheOwner`), and its source.
struct AnswerMarks: Sendable, Equatable {
    /// The marks by the names of `CacheOwner`. An absent name means that the answer is not restricted in that respect.
    private(set) var owner: [String: String] = [:]
    /// The server addresses; nil if no server has answered.
    private(set) var source: AnswerSource?
    /// False if the marks cannot describe the owner, so the answer must not be stored.
    private(set) var isStorable = true

    /// The marks of an answer that has no owner and came from no server.
    init() {}

    /// The marks of an answer that only the load that received it may use.
    static var unstorable: AnswerMarks {
        var marks = AnswerMarks()
        marks.isStorable = false
        return marks
    }

    /// The marks of an answer from a server.
    init(_ provenance: Provenance, to query: CacheQuery) {
        var varying: [String: String?] = [:]
        query.markOwn(&varying)
        isStorable = !provenance.isForced && !query.mayBeCut(provenance) && query.mark(&varying, provenance)
        owner = varying.compactMapValues { $0 }
        source = provenance.source
    }

    /// The marks of a stored response.
    init(_ stored: StoredResponse) {
        owner = stored.varying.filter { CacheOwner.names.contains($0.key) }.compactMapValues { $0 }
        source = stored.source
    }

    /// The marks of a response that a handler took from a cache itself; without an owner for any other response.
    init(_ response: Response) {
        owner = response.properties[StoredOwner.self] ?? [:]
        source = response.properties[StoredSource.self]
    }

    /// Adds the marks of another answer that went into the same response. Two different owners make the response
    /// unstorable; two different servers become the mark `CacheOwner.servers`, which no trust decision accepts.
    mutating func unite(_ other: AnswerMarks) {
        isStorable = isStorable && other.isStorable
        for (name, its) in other.owner {
            guard let own = owner[name], own != its else {
                owner[name] = its
                continue
            }
            if name == CacheOwner.server { owner[name] = CacheOwner.servers } else { isStorable = false }
        }
        source = if let source, let its = other.source { source.united(with: its) } else { source ?? other.source }
    }
}

/// The marks of every answer that the handlers of one request received, including answers that were discarded.
final class CollectedMarks: Sendable {
    private let united = Lock(AnswerMarks())

    var marks: AnswerMarks { united.withLock { $0 } }
    func add(_ marks: AnswerMarks) { united.withLock { $0.unite(marks) } }
}

extension StoredResponse {
    /// Adds the owner marks of the answers that a handler made this response of.
    /// - Returns: false if the owners contradict each other or the marks are not storable.
    mutating func addOwner(_ marks: AnswerMarks) -> Bool {
        guard marks.isStorable else { return false }
        for (name, mark) in marks.owner {
            if let own = varying[name] ?? nil, own != mark { return false }
            varying[name] = .some(mark)
        }
        source = marks.source ?? .unknown
        if CacheOwner.isTemporary(varying) { isMemoryOnly = true }
        return true
    }
}

/// The owner of a stored response (`CacheOwner`), attached to the `Response` given to callers.
enum StoredOwner: PropertyKey {
    typealias Value = [String: String]
}

/// The source of a stored response, attached to the `Response` given to callers.
enum StoredSource: PropertyKey {
    typealias Value = AnswerSource
}

/// The request time and the response time of a stored response, in seconds since 1970.
enum StoredTimes: PropertyKey {
    struct Value: Sendable {
        let request: Double
        let response: Double
    }
}
