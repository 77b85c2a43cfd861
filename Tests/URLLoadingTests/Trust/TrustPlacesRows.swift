// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

/// Other places of TLS authentication: proxies, streams, and connections that serve several hosts.
@Suite(.timeLimit(.minutes(4)))
struct TrustPlacesRows {
    @Test("a proxy is trusted by decision as an origin is, and the challenge says which it is (checklist 88)")
    func proxies() async throws {
        try await withTrust { rig in
            try await withTestProxy(.init(.http, tls: .init(rig.identity))) { proxy in
                var configuration = rig.strict
                configuration.networks.proxyPolicy = .fixed(
                    [try Proxy("https://localhost:\(proxy.port)")], except: .nothing)
                let target = try url("https://localhost:\(rig.origin.port)/")
                try await withSession(configuration) { session in
                    let error = await failure(.certificateUntrusted, .remote, .securing) {
                        try await session.data(from: target)
                    }
                    #expect(error?.proxyFailure != nil && error?.serverTrust?.certificates.count == 1)
                }
                try await withSession(configuration, decisions: rig.accepting) { try await $0.expect(target, "full") }
                #expect(rig.asked.all.map(\.protectionSpace.isProxy) == [true, false])
                #expect(rig.asked.all.map(\.protectionSpace.port) == [Int(proxy.port), Int(rig.origin.port)])
            }
        }
    }

    @Test("a stream's server is trusted by the session's decision")
    func streams() async throws {
        try await withTrust { rig in
            for decisions in [nil, rig.accepting] {
                let session = Session(rig.strict, decisions: decisions)
                let stream = session.streamTask(host: "localhost", port: Int(rig.origin.port), secure: true)
                stream.resume()
                do throws(LoadError) {
                    try await stream.write(Data("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
                    #expect(decisions != nil)
                } catch {
                    #expect(decisions == nil && error.reason == .certificateUntrusted && error.serverTrust != nil)
                }
                await expectEmpty(session)
            }
            #expect(rig.asked.all.count == 1)
        }
    }

    @Test("a client certificate is decided on in TLS 1.2 too, and by default it is that of the configuration")
    func older() async throws {
        try await withTrust(server: { tls, authority, _ in
            tls.clientRootsPEM = authority.pem
            tls.maximumVersion = .tls12
        }) { rig in
            let made = try rig.authority.issue(.init(names: [], commonName: "ada", isForServers: false))
            let identity = try ClientIdentity(certificatePEM: made.certificatePEM, keyPEM: made.keyPEM)
            var configuration = rig.trusting
            configuration.tls.clientIdentities = [try .init("*", identity)]
            let asked = Asked()
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                asked.add(challenge)
                return .performDefaultHandling
            }
            try await withSession(configuration, decisions: decisions) {
                try await $0.expect(rig.origin.url(), "CN=ada")
            }
            #expect(asked.all.map { $0.protectionSpace.method == "ClientCertificate" } == [false, true])
            #expect(asked.all.last?.clientCertificate?.proposed == identity)
        }
    }
}
