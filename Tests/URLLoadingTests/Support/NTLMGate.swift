// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingTesting

@testable import URLLoadingWire

/// A server with NTLM that remembers the user of each connection.
final class NTLMGate: Sendable {
    struct State: Sendable {
        var opened: [Int: String] = [:]
        var asked: Set<Int> = []
        /// `1 -`, `1 negotiate`, `2 authenticate ada`: the connection and the message received on it.
        var seen: [String] = []
        var forgets = false
    }
    let state = Lock(State())
    let passwords: [String: String]
    /// In place of the challenge.
    let words: String
    /// Besides NTLM, before it.
    let others: [String]

    init(
        _ passwords: [String: String] = ["ada": "s3cret", "bob": "pw"], words: [UInt8] = NTLMVectorTests.challenge,
        others: [String] = []
    ) {
        self.passwords = passwords
        self.words = Base64.encode(words)
        self.others = others
    }

    var seen: [String] { state.withLock { $0.seen } }
    /// Forgets the authentication of every connection.
    func forget() { state.withLock { $0.opened = [:] } }

    func answer(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        switch receive(request.connection, request.headers[.authorization], request.bodyCount) {
        case .user(let user): return .ok("\(user) \(request.bodyCount)")
        case .refused(let words):
            var headers = Headers()
            for word in words { headers.append(.wwwAuthenticate, word) }
            return .status(.unauthorized, headers: headers, body: .bytes(Array("refused".utf8)))
        }
    }

    /// Answers a request to a proxy.
    func authorize(_ asked: TestProxy.RecordedRequest) -> TestProxy.Authorization {
        switch receive(
            asked.connection, asked.headers[.proxyAuthorization], Int64(asked.headers[.contentLength] ?? "") ?? 0)
        {
        case .user: return .allow()
        case .refused(let words):
            var headers = Headers()
            for word in words { headers.append(.proxyAuthenticate, word) }
            return .refuse(headers)
        }
    }

    private enum Outcome: Sendable {
        case user(String)
        case refused([String])
    }

    private func receive(_ connection: Int, _ authorization: String?, _ bodyCount: Int64) -> Outcome {
        let message =
            authorization.flatMap { $0.hasPrefix("NTLM ") ? Base64.decode(String($0.dropFirst(5))) : nil } ?? []
        let reader = NTLMReader(bytes: message)
        let type = reader.number32(at: 8)
        return state.withLock { state in
            switch type {
            case 1?:
                state.seen.append("\(connection) negotiate\(bodyCount > 0 ? " with a body" : "")")
                state.asked.insert(connection)
                return .refused(["NTLM " + words])
            case 3?:
                let user = String(decoding: Self.units(reader.payload(36) ?? []), as: UTF16.self)
                state.seen.append("\(connection) authenticate \(user)")
                guard state.asked.remove(connection) != nil, proves(user, reader) else { return .refused(["NTLM"]) }
                state.opened[connection] = user
                return .user(user)
            default:
                state.seen.append("\(connection) \(authorization == nil ? "-" : "?")")
                if let user = state.opened[connection] { return .user(user) }
                return .refused(others + ["NTLM"])
            }
        }
    }

    private func proves(_ user: String, _ reader: NTLMReader) -> Bool {
        guard let digest = LegacyDigest.shared, let password = passwords[user], let long = reader.payload(20),
            long.count > 16
        else { return false }
        let hashes = NTLMHashes(md4: { digest.md4($0) }, md5: { digest.md5($0) })
        let domain = String(decoding: Self.units(reader.payload(28) ?? []), as: UTF16.self)
        let key = NTLMAuthenticate(
            user: domain.isEmpty ? user : domain + "\\" + user, password: password, hashes: hashes
        ).passwordKey
        return Array(long[..<16]) == hashes.hmac(key, Array(NTLMVectorTests.challenge[24..<32]) + long[16...])
    }

    private static func units(_ bytes: [UInt8]) -> [UInt16] {
        stride(from: 0, to: bytes.count - 1, by: 2).map { UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8 }
    }
}

extension TestProxy.Configuration {
    /// A proxy that authenticates connections.
    static func authenticating(_ gate: NTLMGate, tls: HTTPTestServer.TLS? = nil) -> TestProxy.Configuration {
        var configuration = TestProxy.Configuration(.http, tls: tls)
        configuration.authorize = { gate.authorize($0) }
        return configuration
    }
}

/// Runs a proxy that authenticates each connection with NTLM, and passes a configuration that uses it.
nonisolated(nonsending) func withNTLMProxy(
    _ use: (NTLMGate, TestProxy, Configuration) async throws -> Void
) async throws {
    let gate = NTLMGate()
    try await withTestProxy(.authenticating(gate)) { proxy in
        var configuration = Configuration.patient
        configuration.networks.proxyPolicy = .fixed([try proxy.address()])
        try await use(gate, proxy, configuration)
    }
}
