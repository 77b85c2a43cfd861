// SPDX-License-Identifier: Apache-2.0

// Scenarios with a distance between client and server. They run only with `--far` or by name.

extension Scenario {
    static let far: [Scenario] = relay + [50, 150].flatMap(far(roundTrip:))

    /// The same bodies without a delay: no row at a distance can be faster than the relay.
    private static let relay: [Scenario] = [
        farBody("far-0", "200 MB down over http, the relay without a delay", .bulk, .plain, Distance(delay: 0)),
        farBody("far-0-down", "200 MB down over TLS, the relay without a delay", .bulk, .tls, Distance(delay: 0)),
        farBody(
            "far-0-down-h2", "200 MB down over HTTP/2, the relay without a delay", .bulk, .http2TLS, Distance(delay: 0)),
    ]

    private static func far(roundTrip: Int) -> [Scenario] {
        let distance = Distance(delay: roundTrip / 2)
        let gigabit = Distance(delay: roundTrip / 2, rate: 125_000_000)
        let far = "far-\(roundTrip)"
        return [
            farGet("\(far)-new", "GET 1 KB over http, a new connection each", 5, .plain, distance, trips: 2) {
                $0.usesNewConnections = true
            },
            farGet(
                "\(far)-new-h2", "GET 1 KB over HTTP/2 and TLS 1.3, a new connection each", 5, .http2TLS, distance,
                trips: 3
            ) { $0.usesNewConnections = true },
            farGet("\(far)-kept", "GET 1 KB over http, one connection", 10, .plain, distance, trips: 1),
            farGet("\(far)-kept-h2", "GET 1 KB over HTTP/2 and TLS, one connection", 10, .http2TLS, distance, trips: 1),
            farBody("\(far)-down", "200 MB down over TLS and HTTP/1.1", .bulk, .tls, distance),
            farBody("\(far)-down-h2", "200 MB down over TLS and HTTP/2", .bulk, .http2TLS, distance),
            farBody("\(far)-gigabit", "200 MB down over TLS and HTTP/1.1, 125 MB/s", .bulk, .tls, gigabit),
            farBody("\(far)-gigabit-h2", "200 MB down over TLS and HTTP/2, 125 MB/s", .bulk, .http2TLS, gigabit),
            farBody("\(far)-up", "50 MB up over TLS and HTTP/1.1", .uploadMemory, .tls, distance),
            farBody("\(far)-up-h2", "50 MB up over TLS and HTTP/2", .uploadMemory, .http2TLS, distance),
            farGet(
                "\(far)-streams", "64 bodies of 1 MB at once over one HTTP/2 connection with TLS", 64, .http2TLS,
                distance, trips: 1
            ) { ($0.kind, $0.path, $0.bytesEach, $0.connections) = (.bulk, "/1m", megabyte, 64) },
            farGet(
                "\(far)-socket", "1 KB said and heard over a WebSocket, beside GETs of 1 KB", 10, .sockets, distance,
                trips: 1
            ) { $0.field = .peers(Contender.farSockets) },
        ]
    }

    /// Creates a scenario whose requests take `trips` round trips at least.
    private static func farGet(
        _ name: String, _ title: String, _ requests: Int, _ server: Server, _ distance: Distance, trips: Int,
        _ change: (inout Scenario) -> Void = { _ in }
    ) -> Scenario {
        var scenario = Scenario(
            name: name, title: "\(title) (\(least(trips, 0, distance)))", kind: .get, server: server,
            requests: requests, field: .peers([]), countsSyscalls: false, distance: distance)
        change(&scenario)
        return scenario
    }

    /// Creates a scenario with one large body on a connection of its own: the connect, TLS and the request are part of
    /// it, and windows begin at their first size.
    private static func farBody(
        _ name: String, _ title: String, _ kind: Kind, _ server: Server, _ distance: Distance
    ) -> Scenario {
        let bytes = kind == .bulk ? 200 * megabyte : 50 * megabyte
        return Scenario(
            name: name, title: "\(title) (\(least(server.isTLS ? 3 : 2, bytes, distance)))", kind: kind,
            server: server, path: kind == .bulk ? "/200m" : "/sink", requests: 1, bytesEach: bytes, field: .peers([]),
            countsSyscalls: false, distance: distance, usesNewConnections: true)
    }

    /// Returns the least that a request takes in words.
    private static func least(_ trips: Int, _ bytes: Int, _ distance: Distance) -> String {
        guard distance.delay > 0 else { return "no delay" }
        let sending = distance.rate == 0 ? 0 : bytes / (distance.rate / 1000)
        return "at least \(trips) round trip\(trips == 1 ? "" : "s"), \(trips * distance.roundTrip + sending) ms"
    }

    private static let megabyte = 1_000_000
}
