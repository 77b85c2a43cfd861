// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// The policy against requests into private networks: called for every address, and no refused address is connected to.
@Suite(.timeLimit(.minutes(4)))
struct AddressPolicyTests {
    /// Records the addresses that it was asked about.
    final class Asked: Sendable {
        private let all = Lock<[ResolvedAddress]>([])
        func note(_ address: ResolvedAddress) { all.withLock { $0.append(address) } }
        var texts: [String] { all.withLock { $0.map(\.description) } }
    }

    private func configuration(
        _ resolver: RecordingResolver = RecordingResolver(), _ allows: @escaping @Sendable (ResolvedAddress) -> Bool
    ) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.networks.resolver = resolver
        configuration.networks.addressPolicy = AddressPolicy(allows)
        return configuration
    }

    @Test(
        "literal addresses, localhost and names are asked about alike",
        arguments: ["127.0.0.1", "localhost", "name.example"])
    func everyHost(_ host: String) async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let asked = Asked()
            let session = Session(
                configuration {
                    asked.note($0)
                    return false
                })
            let target = try url("http://\(host):\(origin.port)/")
            let error = await failure(.addressRefused, .local, .connecting) { try await session.data(from: target) }
            #expect(error?.url == target)
            #expect(error?.code == -1004)
            #expect(asked.texts.contains { $0.hasSuffix("127.0.0.1:\(origin.port)") })
            #expect(asked.texts.count == (host == "localhost" ? 2 : 1))
            #expect(origin.requests.isEmpty)
            await expectEmpty(session)
        }
    }

    @Test("the error names the host and no address")
    func silence() async throws {
        let session = Session(
            configuration(RecordingResolver(.success([.ipv4((10, 1, 2, 3), port: 0)]))) { $0.isGlobal })
        let error = await failure(.addressRefused) { try await session.data(from: url("http://intern.example/")) }
        #expect(error.map { "\($0)" } == "addressRefused (connecting, http://intern.example/): intern.example")
    }

    @Test("refused addresses are skipped, and the others are connected to")
    func someRefused() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            // The first address cannot be connected to within the test.
            let found: [SocketAddress] = [.ipv4((192, 0, 2, 1), port: 0), .ipv4((127, 0, 0, 1), port: 0)]
            let session = Session(configuration(RecordingResolver(.success(found))) { $0.isLoopback })
            try await session.expect(url("http://name.example:\(origin.port)/"), "hello")
        }
    }

    @Test(
        "a redirect is asked about at each hop",
        arguments: ["169.254.169.254", "metadata.example", "[::ffff:127.0.0.1]"])
    func redirects(_ host: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("http://\(host):\(origin.port)/secret") }
            let asked = Asked()
            // The name is refused, wherever it leads; the addresses are.
            let session = Session(
                configuration {
                    asked.note($0)
                    return $0.host == "127.0.0.1"
                })
            let error = await failure(.addressRefused) { try await session.data(from: origin.url("/")) }
            #expect(error?.url?.path() == "/secret")
            #expect(asked.texts.count == 2)
            #expect(origin.requests.map(\.path) == ["/"])
        }
    }

    @Test("a kept connection was asked about when it was made")
    func keptConnection() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let asked = Asked()
            var configuration = configuration {
                asked.note($0)
                return true
            }
            // No cache: the policy would also be asked about the address of a stored response, at each look-up.
            configuration.caching.usesMemoryStore = false
            let session = Session(configuration)
            for _ in 0..<3 { try await session.expect(origin.url("/"), "hello") }
            #expect(asked.texts == ["127.0.0.1:\(origin.port)"])
        }
    }

    @Test(
        "the public only: this machine is refused in every spelling",
        arguments: [
            "127.0.0.1", "localhost", "LOCALHOST.", "a.localhost", "[::1]", "[::]", "0.0.0.0", "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "127.0.0.2", "1%32%37.0.0.1", "name.example",
        ])
    func publicOnly(_ host: String) async throws {
        var configuration = Configuration.ephemeral
        configuration.networks.resolver = RecordingResolver()
        configuration.networks.addressPolicy = .publicOnly
        let session = Session(configuration)
        await expectFailure(.addressRefused, .local) { try await session.data(from: url("http://\(host):1/")) }
    }
}
