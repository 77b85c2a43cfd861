// Whose an answer is and where it came from, as a value that the answer's exchange brings along. Requests of a load
// that run at once share nothing of it.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// The identity that a request carried beyond the fields of its caller.
struct CarriedIdentity: Sendable {
    /// The login of the Authorization field, or of the connection; `nil` without one.
    var login: Login?
    /// The Cookie field holds cookies of the session's store.
    var hasCookies = false
}

/// What an exchange with a server says to the cache besides its head.
struct Provenance: Sendable {
    var carried = CarriedIdentity()
    /// The server knows the client by a certificate.
    var hasCertificate = false
    /// A decision alone trusts the server.
    var isForced = false
    /// The certificate of the server; `nil` without TLS.
    var server: String?
    var source = AnswerSource.unknown
    /// A resolver or a proxy of the configuration's own led to the server.
    var isPrivatelyRouted = false
}

/// Whose an answer is, in the marks that a stored response keeps (`CacheOwner`), and where it came from.
struct AnswerMarks: Sendable, Equatable {
    /// By the names of `CacheOwner`. Without one of them the answer is not restricted in that respect.
    private(set) var owner: [String: String] = [:]
    /// Nil while no server has answered.
    private(set) var source: AnswerSource?
    /// False if no marks say whose it is.
    private(set) var isStorable = true

    /// Of an answer without an owner that came from no server.
    init() {}

    /// Of an answer that is for the load alone that got it.
    static var unstorable: AnswerMarks {
        var marks = AnswerMarks()
        marks.isStorable = false
        return marks
    }

    /// Of an answer from a server.
    init(_ provenance: Provenance, to query: CacheQuery) {
        var varying: [String: String?] = [:]
        query.markOwn(&varying)
        isStorable = !provenance.isForced && query.mark(&varying, provenance)
        owner = varying.compactMapValues { $0 }
        source = provenance.source
    }

    /// Of a stored response.
    init(_ stored: StoredResponse) {
        owner = stored.varying.filter { CacheOwner.names.contains($0.key) }.compactMapValues { $0 }
        source = stored.source
    }

    /// Of a response that a handler took out of a cache itself; without an owner otherwise.
    init(_ response: Response) {
        owner = response.properties[StoredOwner.self] ?? [:]
        source = response.properties[StoredSource.self]
    }

    /// The marks of what was made of two answers: those of both. Where they name two owners, no mark says whose it is;
    /// two servers are a mark that no decision about servers has let pass.
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

/// The marks of every answer that the handlers of one request were given, however many at once and whatever became of
/// them.
final class GatheredMarks: Sendable {
    private let united = Lock(AnswerMarks())

    var marks: AnswerMarks { united.withLock { $0 } }
    func add(_ marks: AnswerMarks) { united.withLock { $0.unite(marks) } }
}

extension StoredResponse {
    /// Marks what a handler made of answers as their owner's.
    /// - Returns: false if no marks say whose it is.
    mutating func bear(_ marks: AnswerMarks) -> Bool {
        guard marks.isStorable else { return false }
        for (name, mark) in marks.owner {
            if let own = varying[name] ?? nil, own != mark { return false }
            varying[name] = .some(mark)
        }
        source = marks.source ?? .unknown
        if CacheOwner.isPassing(varying) { isMemoryOnly = true }
        return true
    }
}

/// Whose a stored response is (`CacheOwner`), as long as callers hold it.
enum StoredOwner: PropertyKey {
    typealias Value = [String: String]
}

/// Where a stored response came from, as long as callers hold it.
enum StoredSource: PropertyKey {
    typealias Value = AnswerSource
}

/// When a stored response was asked for and came, in seconds since 1970.
enum StoredTimes: PropertyKey {
    struct Value: Sendable {
        let request: Double
        let response: Double
    }
}
