// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/slow-networks.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct SlowNetworksGuideTests {
    @Test("a mobile network")
    func mobile() async throws {
        let session = Session(.ephemeral)
        try await withHTTPTestServer { origin in
            origin.route("/feed") { _ in .ok("news") }
            try await withNetworkRelay(to: origin.url(), .mobile) { relay in
                let (data, _) = try await session.data(from: relay.url("/feed"))
                #expect(data.count == 4)
                #expect(relay.connections[0].roundTrips == 2)  // the connect, and the request
            }
        }
    }

    @Test("a server by its name")
    func name() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/feed") { _ in .ok("news") }
            try await withNetworkRelay(toPort: origin.port) { relay in
                var configuration = Configuration.ephemeral
                configuration.networks.addressOverrides = [
                    try .connect("api.example", to: "127.0.0.1", onPort: relay.port)
                ]
                try await Session(configuration).expect(try url("http://api.example/feed"), "news")
                #expect(relay.counts.accepted == 1 && origin.requests.first?.headers[.host] == "api.example")
            }
        }
    }

    @Test("a network that fails while a load runs")
    func fails() async throws {
        let session = Session(.ephemeral)
        try await withHTTPTestServer { origin in
            origin.route("/film") { _ in .ok(.repeated(count: 100_000_000)) }
            try await withNetworkRelay(to: origin.url(), .mobile) { relay in
                let load = Task { try await session.data(from: relay.url("/film")) }
                try await relay.wait { $0.toClient.delivered > 100_000 }
                relay.fallSilent(.toClient)  // until other conditions are set
                relay.conditions = .mobile
                try await relay.wait { $0.toClient.delivered > 200_000 }
                relay.cutAll(.reset)  // all open connections; new ones work
                await #expect(throws: LoadError.self) { try await load.value }
            }
        }
    }

    @Test("a satellite without waiting")
    func manual() async throws {
        let session = Session(.ephemeral)
        try await withHTTPTestServer { origin in
            origin.route("/feed") { _ in .ok("news") }
            let clock = ManualClock()
            try await withNetworkRelay(to: origin.url(), .init(delay: .milliseconds(300)), clock: clock) { relay in
                let load = Task { try await session.data(from: relay.url("/feed")) }
                for _ in 1...2 {  // to the server, to the client
                    try await clock.untilSleeping()  // bytes are on their way
                    clock.advance(by: .milliseconds(900))  // the connect, and one way
                }
                let (data, _) = try await load.value
                #expect(data.count == 4)
            }
        }
    }
}
