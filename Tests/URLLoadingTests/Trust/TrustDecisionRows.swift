// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

/// Checklist 66, 67, 69, 77, 81, 82: a decision about server trust, while the handshake waits.
@Suite(.timeLimit(.minutes(4)))
struct TrustDecisionRows {
    @Test("a decision gets the chain and the failures, and may accept an untrusted server (checklist 81, 82)")
    func accepts() async throws {
        try await withTrust { rig in
            try await withSession(rig.strict, decisions: rig.accepting) {
                try await $0.expect(rig.origin.url(), "full")
            }
            let challenge = try #require(rig.asked.all.first)
            #expect(rig.asked.all.count == 1)
            #expect(challenge.protectionSpace.method == "ServerTrust" && challenge.protectionSpace.host == "localhost")
            #expect(challenge.protectionSpace.port == Int(rig.origin.port) && !challenge.protectionSpace.isProxy)
            let trust = try #require(challenge.serverTrust)
            #expect(!trust.isTrusted && trust.failures.first?.reason == .certificateUntrusted && !trust.isResumed)
            let leaf = try rig.leaf
            #expect(trust.certificates.first == leaf && trust.host == "localhost")
            #expect(
                leaf.subject == "CN=test" && leaf.issuer == "CN=Test root"
                    && leaf.subjectAlternativeNames == [.dns("localhost")])
            #expect(
                leaf.publicKey.bits == 256 && leaf.notBefore < .now && leaf.notAfter > .now
                    && !leaf.isCertificateAuthority)
            #expect(leaf.publicKeySHA256.count == 32 && Certificate(pem: Array(leaf.pem.utf8)) == leaf)
        }
    }

    @Test("a decision may refuse a trusted server: nothing is sent (checklist 82)")
    func refuses() async throws {
        try await withTrust { rig in
            for (answer, reason) in [
                (ChallengeDecision.rejectProtectionSpace, LoadError.Reason.certificateRefused), (.cancel, .cancelled),
            ] {
                try await withSession(rig.trusting, decisions: rig.decision { _ in answer }) { session in
                    let error = await failure(reason, .local) { try await session.data(from: rig.origin.url()) }
                    #expect((error?.serverTrust != nil) == (reason == .certificateRefused))
                }
            }
            let trusted = rig.asked.trusts.allSatisfy(\.isTrusted)
            #expect(trusted && rig.asked.trusts.first?.chain.count == 2)
            #expect(rig.origin.counts.requests == 0)
        }
    }

    @Test("by default an untrusted server is refused as without a decision (checklist 75)", arguments: [false, true])
    func defaults(_ isTrusted: Bool) async throws {
        try await withTrust { rig in
            for answer in [ChallengeDecision.performDefaultHandling, .use(Credential(user: "u", password: "p"))] {
                try await withSession(isTrusted ? rig.trusting : rig.strict, decisions: rig.decision { _ in answer }) {
                    session in
                    if isTrusted { return try await session.expect(rig.origin.url(), "full") }
                    let error = await failure(.certificateUntrusted, .remote, .securing) {
                        try await session.data(from: rig.origin.url())
                    }
                    #expect(error?.serverTrust?.certificates.count == 1)
                }
            }
        }
    }

    @Test("a decision gets all failures, not only the first")
    func everything() async throws {
        try await withTrust(.init(names: ["other.example"], validity: .past)) { rig in
            try await withSession(rig.strict, decisions: rig.accepting) {
                try await $0.expect(rig.origin.url(), "full")
            }
            let reasons = Set(try #require(rig.asked.trusts.first).failures.map(\.reason))
            #expect(
                reasons.isSuperset(of: [.certificateUntrusted, .certificateNameMismatch, .certificateExpired]),
                "\(reasons)")
        }
    }

    /// OpenSSL reports only the weak key of a chain without a trusted root. A decision that accepts the key must get
    /// the second failure, too.
    @Test("a weakness does not hide a second one: an unknown issuer is reported, too", arguments: [false, true])
    func hidden(_ isSelfSigned: Bool) async throws {
        var options = TestCertificateOptions()
        options.key = .rsa(1024)
        options.isSelfSigned = isSelfSigned
        try await withTrust(options, server: { tls, _, _ in tls.allowsWeakKeys = true }) { rig in
            for configuration in [rig.strict, rig.trusting] {
                let before = rig.asked.trusts.count
                try await withSession(configuration, decisions: rig.accepting) {
                    try await $0.expect(rig.origin.url(), "full")
                }
                let reasons = Set(rig.asked.trusts.dropFirst(before).first?.failures.map(\.reason) ?? [])
                let isVouched = configuration.tls.trustRoots == rig.trusting.tls.trustRoots && !isSelfSigned
                #expect(reasons.contains(.certificateWeak))
                #expect(
                    reasons.isDisjoint(with: [.certificateSelfSigned, .certificateUntrusted]) == isVouched, "\(reasons)"
                )
            }
        }
        // The certificate is itself a trusted root.
        guard isSelfSigned else { return }
        try await withTrust(options, server: { tls, _, _ in tls.allowsWeakKeys = true }) { rig in
            var configuration = rig.strict
            configuration.tls.trustRoots = .pem(String(decoding: rig.identity.certificatePEM, as: UTF8.self))
            try await withSession(configuration, decisions: rig.accepting) {
                try await $0.expect(rig.origin.url(), "full")
            }
            #expect(rig.asked.trusts.first?.failures.map(\.reason) == [.certificateWeak])
        }
    }

    @Test("the trust of another challenge, or an identity, is no answer")
    func badAnswers() async throws {
        try await withTrust { rig in
            let other = Lock<ServerTrust?>(nil)
            try await withSession(
                rig.strict,
                decisions: rig.decision { trust in
                    other.withLock { $0 = trust }
                    return .cancel
                }
            ) { session in
                await expectFailure(.cancelled) { try await session.data(from: rig.origin.url()) }
            }
            let stale = try #require(other.withLock { $0 })
            let elsewhere = rig.origin.url("/").absoluteString.replacing("localhost", with: "other.localhost")
            let identity = try ClientIdentity(certificatePEM: rig.identity.certificatePEM, keyPEM: rig.identity.keyPEM)
            for answer in [ChallengeDecision.accept(stale), .present(identity)] {
                try await withSession(rig.strict, decisions: rig.decision { _ in answer }) { session in
                    await expectFailure(.badDecision, .local, .deciding) {
                        try await session.data(from: try url(elsewhere))
                    }
                }
            }
        }
    }

    // MARK: Time

    @Test("while a decision takes its time the handshake waits, and the server's silence does not count")
    func slow() async throws {
        try await withTrust { rig in
            let clock = ManualClock()
            var configuration = rig.strict
            configuration.use(clock)
            configuration.timeouts.idle = .seconds(1)
            let isAsked = Latch()
            let mayAnswer = Latch()
            let decisions = rig.decision { trust in
                isAsked.open()
                await mayAnswer.wait()
                return .accept(trust)
            }
            try await withSession(configuration, decisions: decisions) { session in
                async let text = session.text(rig.origin.url())
                await isAsked.wait()
                clock.advance(by: .seconds(2))
                mayAnswer.open()
                let loaded = try await text
                #expect(loaded == "full")
            }
        }
    }

    struct Refused: Error {}

    @Test("a decision that throws ends the load with its error")
    func throwing() async throws {
        try await withTrust { rig in
            try await withSession(rig.trusting, decisions: rig.decision { _ in throw Refused() }) { session in
                let error = await failure(.decisionFailed, .local, .deciding) {
                    try await session.data(from: rig.origin.url())
                }
                #expect(error?.underlying is Refused)
            }
            #expect(rig.origin.counts.requests == 0)
        }
    }

    @Test(
        "a decision that never answers: its deadline, the load's cancellation or the session's end free the socket",
        arguments: 0..<4)
    func never(_ way: Int) async throws {
        try await withTrust { rig in
            let clock = ManualClock()
            var configuration = rig.strict
            configuration.use(clock)
            let isAsked = Latch()
            let isOver = Latch()
            let decisions = rig.decision(
                timeout: way < 2 ? .seconds(5) : nil, fallback: way == 1 ? .performDefaultHandling : nil
            ) { trust in
                isAsked.open()
                // Deaf to cancellation.
                await Task { await isOver.wait() }.value
                return .accept(trust)
            }
            let session = Session(configuration, decisions: decisions)
            let load = Task { try await session.text(rig.origin.url()) }
            await isAsked.wait()
            switch way {
            case 0, 1: clock.advance(by: .seconds(6))
            case 2: load.cancel()
            default: session.invalidateAndCancel()
            }
            await expectFailure([.decisionTimeout, .certificateUntrusted, .cancelled, .cancelled][way]) {
                try await load.value
            }
            #expect(session.connectionsDescription == "empty")
            isOver.open()
            await expectEmpty(session)
            try await rig.origin.wait { $0.open == 0 }
            #expect(rig.origin.counts.requests == 0)
        }
    }

    // MARK: The decision that applies

    @Test(
        "the session's decision precedes the load's own, which is called if the session has none (checklist 66, 67, 69)"
    )
    func order() async throws {
        try await withTrust { rig in
            let refusing = rig.decision { _ in .rejectProtectionSpace }
            let request = Request(url: rig.origin.url())
            try await withSession(rig.strict, decisions: rig.accepting) { session in
                _ = try await session.data(for: request, decisions: refusing)
            }
            try await withSession(rig.strict) { session in
                _ = try await session.data(for: request, decisions: rig.accepting)
                await expectFailure(.certificateRefused) { try await session.data(for: request, decisions: refusing) }
            }
        }
    }

    @Test("a connection or TLS session accepted by one decision serves no load with another decision")
    func apart() async throws {
        try await withTrust { rig in
            let request = Request(url: rig.origin.url())
            try await withSession(rig.strict) { session in
                let accepting = rig.accepting
                for _ in 1...2 { _ = try await session.data(for: request, decisions: accepting) }
                // The same decision: one connection.
                #expect(rig.origin.counts.accepted == 1 && rig.asked.all.count == 1)
                await expectFailure(.certificateUntrusted) { try await session.data(for: request) }
                _ = try await session.data(for: request, decisions: rig.accepting)
                #expect(rig.origin.counts.accepted == 3 && rig.asked.all.count == 2)
                let resumed = rig.asked.trusts.contains(where: \.isResumed)
                #expect(!resumed)
            }
        }
    }

    @Test(
        "a decision holds on resumed sessions: it is asked again, of what was shown then (security 20)",
        arguments: [true, false])
    func resumed(_ stays: Bool) async throws {
        try await withTrust { rig in
            var configuration = rig.strict
            configuration.connections.idleLifetime = .zero
            let decisions = rig.decision { $0.isResumed && !stays ? .performDefaultHandling : .accept($0) }
            try await withSession(configuration, decisions: decisions) { session in
                try await session.expect(rig.origin.url(), "full")
                if stays { return try await session.expect(rig.origin.url(), "resumed") }
                let error = await failure(.certificateUntrusted) { try await session.data(from: rig.origin.url()) }
                #expect(error?.serverTrust?.isResumed == true)
            }
            #expect(rig.asked.trusts.map(\.isResumed) == [false, true])
            let leaf = try rig.leaf
            #expect(rig.asked.trusts.last?.certificates.first == leaf)
        }
    }

    @Test("many handshakes pause at once")
    func many() async throws {
        try await withTrust { rig in
            let decisions = rig.decision { trust in
                try await Task.sleep(for: .microseconds(500))
                return .accept(trust)
            }
            try await withSession(rig.strict, decisions: decisions) { session in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for index in 0..<24 {
                        group.addTask {
                            if index % 3 == 0 {
                                let task = Task { try await session.text(rig.origin.url()) }
                                task.cancel()
                                _ = try? await task.value
                            } else {
                                _ = try await session.text(rig.origin.url())
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }
}
