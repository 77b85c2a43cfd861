// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/networks.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct NetworksGuideTests {
    @Test("a server keeps off its own network")
    func publicOnly() async throws {
        try await withHTTPTestServer { origin in
            let given = origin.url("/")
            guard ["http", "https"].contains(given.scheme) else { return }
            var configuration = Configuration.ephemeral
            configuration.networks.addressPolicy = .publicOnly
            let session = Session(configuration)
            var isRefused = false
            do {
                let (data, _) = try await session.data(from: given)
                Issue.record("\(data)")
            } catch let error as LoadError where error.reason == .addressRefused {
                isRefused = true
            }
            #expect(isRefused)
        }
    }

    @Test("a policy of one's own")
    func ownPolicy() {
        let policy = AddressPolicy { address in
            address.isGlobal || address.host == "images.internal" && address.isPrivate
        }
        let cases = [
            ("10.0.0.1", "images.internal", true), ("10.0.0.1", "other.internal", false),
            ("9.9.9.9", "dns.example", true),
        ]
        for (text, host, isAllowed) in cases {
            #expect(ResolvedAddress(text, host: host).map(policy.allows) == isAllowed)
        }
    }

    @Test("paths, and a load that waits for one")
    func paths() async throws {
        let current = NetworkMonitor.shared.current
        var told: [NetworkPath] = []
        for await path in NetworkMonitor.shared.paths {
            told.append(path)
            break
        }
        #expect(told == [current])

        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let session = Session(.ephemeral)
            // A machine without a network would wait.
            guard current.isSatisfied else { return }
            let data = try await loadOnceConnected(Request(url: origin.url("/")), session)
            #expect(data.count == 5)
        }
    }

    /// Nothing if the network has let us down.
    private func attempt(_ request: Request, _ session: Session) async throws -> Data? {
        do {
            return try await session.data(for: request).0
        } catch  where [.unreachable, .lookupFailed, .connectionLost].contains(error.reason) {
            return nil
        }
    }

    private func loadOnceConnected(_ request: Request, _ session: Session) async throws -> Data {
        // Tried again when the network has changed, not by the clock.
        for await path in NetworkMonitor.shared.paths where path.isSatisfied {
            if let data = try await attempt(request, session) { return data }
        }
        throw CancellationError()
    }

    @Test("the example of traffic classes")
    func trafficClass() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let url = origin.url("/")
            var configuration = Configuration.ephemeral
            configuration.networks.trafficClass = .background
            var request = Request(url: url)
            request.trafficClass = .responsive
            let session = Session(configuration)
            _ = try await session.data(for: request)
            _ = try await session.data(from: url)
            #expect(origin.counts.accepted == 2)
        }
    }

    @Test("networks that cost")
    func access() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let url = origin.url("/")
            var configuration = Configuration.ephemeral
            configuration.networks.allowsCellular = false
            var request = Request(url: url)
            request.allowsCellularAccess = true
            let (data, _) = try await Session(configuration).data(for: request)
            #expect(data.count == 5)
        }
        // That of the guide is everybody's; this one is a test's own.
        let hints = NetworkMonitor.Hints(isExpensive: true)
        #expect(hints.isExpensive == true && !hints.isConstrained)
    }
}
