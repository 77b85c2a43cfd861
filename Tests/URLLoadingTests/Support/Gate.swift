// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// A server's side of authentication, implemented independently of the client: accepted users and recorded fields.
final class Gate: Sendable {
    enum Kind: Sendable {
        case basic
        case digest(String, qop: String?)
        case bearer
    }
    struct State: Sendable {
        var nonces: Set<String> = ["n0"]
        var stale: Set<String> = []
        var nonce = "n0"
        var counts: [String: Set<String>] = [:]
        /// The received fields, and the errors in them.
        var seen: [String] = []
        var faults: [String] = []
        var token = "t1"
    }
    let state = Lock(State())
    let kinds: [Kind]
    let realm: String
    let user: String
    let password: String
    let field: FieldName
    var extra: String { extraText.withLock { $0 } }
    let extraText = Lock("")
    /// Given with each success.
    let sendsNext: Bool

    init(
        _ kinds: [Kind], realm: String = "zone", user: String = "ada", password: String = "s3cret",
        field: FieldName = .authorization,
        sendsNext: Bool = false
    ) {
        (self.kinds, self.realm, self.user, self.password, self.field, self.sendsNext) = (
            kinds, realm, user, password, field, sendsNext
        )
    }

    var seen: [String] { state.withLock { $0.seen } }
    var faults: [String] { state.withLock { $0.faults } }

    /// From now on older nonces are too old.
    func newNonce(_ nonce: String) {
        state.withLock { state in
            state.stale.formUnion(state.nonces)
            state.nonces = [nonce]
            state.nonce = nonce
        }
    }

    func answer(_ request: HTTPTestServer.RecordedRequest, _ ok: String = "in") -> HTTPTestServer.Response {
        let field = request.headers[self.field]
        state.withLock { if let field { $0.seen.append(field) } else { $0.seen.append("-") } }
        var isStale = false
        if let field, accepts(field, request, &isStale) {
            guard sendsNext else { return .ok(ok) }
            let next = state.withLock { state in
                state.nonce = "n\(state.nonces.count)"
                state.nonces.insert(state.nonce)
                return state.nonce
            }
            return .ok(ok, headers: [.authenticationInfo: "nextnonce=\"\(next)\""])
        }
        var headers = Headers()
        for kind in kinds { headers.append(.wwwAuthenticate, challenge(kind, isStale)) }
        return .status(.unauthorized, headers: headers, body: .bytes(Array("refused".utf8)))
    }

    /// The answer of a proxy: its challenges are those of the gate.
    func answerAsProxy(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        var answer = answer(request)
        guard answer.status == .unauthorized else { return answer }
        answer.status = .proxyAuthenticationRequired
        var headers = Headers()
        for value in answer.headers.values(of: .wwwAuthenticate) { headers.append(.proxyAuthenticate, value) }
        answer.headers = headers
        return answer
    }

    private func challenge(_ kind: Kind, _ isStale: Bool) -> String {
        switch kind {
        case .basic: return "Basic realm=\"\(realm)\""
        case .bearer: return "Bearer realm=\"\(realm)\"" + (isStale ? ", error=\"invalid_token\"" : "")
        case .digest(let algorithm, let qop):
            // A nonce for each challenge.
            let nonce = state.withLock { state in
                let nonce = "\(state.nonce).\(state.nonces.count)"
                state.nonces.insert(nonce)
                return nonce
            }
            return "Digest realm=\"\(realm)\", nonce=\"\(nonce)\", algorithm=\(algorithm)"
                + (qop.map { ", qop=\"\($0)\"" } ?? "")
                + (isStale ? ", stale=true" : "") + extra
        }
    }

    private func accepts(_ field: String, _ request: HTTPTestServer.RecordedRequest, _ isStale: inout Bool) -> Bool {
        if field.hasPrefix("Basic ") {
            guard kinds.contains(where: { if case .basic = $0 { true } else { false } }) else { return false }
            return field == "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
        }
        if field.hasPrefix("Bearer ") { return field == "Bearer " + state.withLock { $0.token } }
        guard kinds.contains(where: { if case .digest = $0 { true } else { false } }) else { return false }
        return proves(field, request, &isStale)
    }

    private func proves(_ field: String, _ request: HTTPTestServer.RecordedRequest, _ isStale: inout Bool) -> Bool {
        guard let given = AuthenticationChallenge.parse([field]).first, given.isOf("Digest"),
            let nonce = given["nonce"],
            let algorithm = given["algorithm"]
        else { return false }
        let name = algorithm.replacing("-sess", with: "")
        let hash: DigestHash = name == "MD5" ? .md5 : name == "SHA-256" ? .sha256 : .sha512_256
        func h(_ text: String) -> String { hash.hex(Array(text.utf8)) ?? "" }
        var first = h("\(user):\(realm):\(password)")
        if algorithm.hasSuffix("-sess") { first = h("\(first):\(nonce):\(given["cnonce"] ?? "")") }
        var second = "\(request.method):\(request.target)"
        if given["qop"] == "auth-int" { second += ":" + (hash.hex(request.body) ?? "") }
        let middle = given["qop"].map { "\(nonce):\(given["nc"] ?? ""):\(given["cnonce"] ?? ""):\($0)" } ?? nonce
        guard given["uri"] == request.target, given["realm"] == realm,
            given["response"] == h("\(first):\(middle):\(h(second))")
        else { return false }
        return state.withLock { state in
            guard state.nonces.contains(nonce) else {
                isStale = state.stale.contains(nonce)
                return false
            }
            // A count that came twice is a replay (RFC 7616 §3.4).
            if let count = given["nc"], !state.counts[nonce, default: []].insert(count).inserted {
                state.faults.append("\(nonce) \(count) twice")
                return false
            }
            return true
        }
    }
}

final class ChallengeLog: Sendable {
    private let state = Lock<[Challenge]>([])
    func withLock<R: Sendable>(_ use: @Sendable (inout [Challenge]) -> R) -> R { state.withLock { use(&$0) } }
}

extension Decisions {
    /// Answers challenges, and remembers them.
    static func challenged(
        _ log: ChallengeLog, _ answer: @escaping @Sendable (Challenge) -> ChallengeDecision
    ) -> Decisions {
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            log.withLock { $0.append(challenge) }
            return answer(challenge)
        }
        return decisions
    }
}

/// Runs an origin that requires authentication on every path.
func withGate(_ gate: Gate, _ use: (HTTPTestServer) async throws -> Void) async throws {
    try await withHTTPTestServer { origin in
        origin.route("/*") { gate.answer($0) }
        try await use(origin)
    }
    #expect(gate.faults == [])
}

/// Runs an origin that authenticates connections, on every path.
func withGate(_ gate: NTLMGate, _ use: (HTTPTestServer) async throws -> Void) async throws {
    try await withHTTPTestServer { origin in
        origin.route("/*") { gate.answer($0) }
        try await use(origin)
    }
}
