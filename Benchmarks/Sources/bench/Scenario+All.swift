// SPDX-License-Identifier: Apache-2.0

extension Scenario {
    static let all: [Scenario] = gets + bodies + connecting + loads + programs + apis + sockets

    private static let gets: [Scenario] =
        [1, 4, 16, 64, 256, 1_000, 4_000, 10_000].map { count in
            var scenario = get("get-\(count)", "GET 1 KB, \(count) at a time", count, 40_000)
            scenario.countsSyscalls = count == 1 || count == 64
            if count == 1 {
                (scenario.sharesCore, scenario.requests) = (true, 20_000)
                scenario.title = "GET 1 KB, one at a time, client and server on one core"
            }
            return scenario
        } + [
            get("get-64-core", "GET 1 KB, 64 at a time, client and server on one core", 64, 40_000) {
                ($0.sharesCore, $0.countsSyscalls) = (true, false)
            },
            // By the delayed acknowledgement of Linux a client that does not acknowledge at once waits for 40 ms: the
            // rate.
            get(
                "apart", "GET 1 KB, one at a time, from a server that writes its head and its body apart", 1, 200,
                .holding
            ) {
                ($0.path, $0.countsSyscalls) = ("/apart", false)
            },
            get("defaults-64", "GET 1 KB, 64 at a time: sessions as they are by default", 64, 40_000) {
                $0.field = .only(Contender.defaults)
            },
            get("defaults-256", "GET 1 KB, 256 at a time: sessions as they are by default", 256, 40_000) {
                ($0.field, $0.countsSyscalls) = (.only(Contender.defaults), false)
            },
            get("get-tls-64", "GET 1 KB over TLS, 64 at a time", 64, 40_000, .tls),
            get("get-h2-1", "GET 1 KB over HTTP/2, one at a time, client and server on one core", 1, 20_000, .http2) {
                $0.sharesCore = true
            },
            get("get-h2-64", "GET 1 KB over HTTP/2, 64 at a time", 64, 60_000, .http2),
            get(
                "get-h2-tls-1", "GET 1 KB over HTTP/2 and TLS, one at a time, client and server on one core", 1, 20_000,
                .http2TLS
            ) { $0.sharesCore = true },
            get("get-h2-tls-64", "GET 1 KB over HTTP/2 and TLS, 64 at a time", 64, 40_000, .http2TLS),
        ]

    private static let bodies: [Scenario] = [
        body("bulk", "1 GiB, discarded", .bulk, .plain),
        body("bulk-tls", "1 GiB over TLS, discarded", .bulk, .tls),
        body(
            "bulk-tunnel", "1 GiB over TLS, discarded, directly and through an HTTP proxy that splices (CONNECT)",
            .bulk, .tls
        ) { $0.field = .floor([Contender.roads[1]]) },
        body("bulk-h2-tls", "1 GiB over TLS, discarded, over HTTP/2 (ours) and HTTP/1.1", .bulk, .http2TLS) {
            $0.field = .floor([Contender.roads[0]])
        },
        body("upload-file", "1 GiB up from a file", .uploadFile, .holding) { $0.path = "/sink" },
        body("upload", "1 GiB up, streamed in pieces of 64 KiB", .uploadMemory, .holding) { $0.path = "/sink" },
        body("upload-large", "1 GiB up, streamed in pieces of 256 KiB", .uploadMemory, .holding) {
            ($0.path, $0.piece) = ("/sink", 256 << 10)
        },
        body("download", "1 GiB down to a file in memory", .download, .plain),
    ]

    private static let connecting: [Scenario] = [
        Scenario(
            name: "handshake", title: "New TLS connection for each request, 16 at a time", kind: .handshake,
            server: .tlsFull, connections: 16, requests: 800),
        Scenario(
            name: "handshake-resumed", title: "The same, TLS session resumed", kind: .resumed, server: .tlsResuming,
            connections: 16, requests: 1200),
    ]

    private static let loads: [Scenario] = [
        Scenario(
            name: "inflight", title: "2,000 requests in flight, each on a new connection (FoundationNetworking: 1,000)",
            kind: .inflight, server: .holding, path: "/hold/", connections: 2000, requests: 2000, countsSyscalls: false),
        Scenario(
            name: "inflight-10000", title: "10,000 requests in flight, each on a new connection", kind: .inflight,
            server: .holding, path: "/hold/", connections: 10_000, requests: 10_000, countsSyscalls: false),
        get("queued", "100,000 requests at once over 64 connections", 100_000, 100_000) {
            ($0.places, $0.countsSyscalls) = (64, false)
        },
        Scenario(
            name: "paced", title: "GET 1 KB, 10,000 a second over at most 64 connections", kind: .paced, server: .plain,
            connections: 64, requests: 20_000, countsSyscalls: false),
        body("beside", "1 GiB over TLS, discarded, and the latency of GETs of 1 KB beside it", .beside, .tls) {
            $0.countsSyscalls = false
        },
        body(
            "beside-handshakes", "1,600 new TLS connections, 16 at a time, and the latency of GETs of 1 KB beside them",
            .beside, .tlsFull
        ) {
            ($0.countsSyscalls, $0.connections, $0.path) = (false, 16, "/1k")
            ($0.bytesEach, $0.unit) = (1_600 << 10, .process)
            $0.field = .only(Contender.besideHandshakes)
        },
    ]

    private static let programs: [Scenario] = [
        Scenario(
            name: "start", title: "Process start to first response and exit, http", kind: .start, server: .plain,
            requests: 1, unit: .process),
        Scenario(
            name: "start-tls", title: "Process start to first response and exit, https", kind: .start, server: .tls,
            requests: 1, unit: .process),
    ]

    private static let apis: [Scenario] = [
        get("shapes-1", "Our shapes, GET 1 KB, one connection, client and server on one core", 1, 20_000) {
            ($0.sharesCore, $0.field) = (true, .only(Contender.shapes + Contender.classicShapes))
        },
        get("shapes-64", "Our shapes, GET 1 KB, 64 connections", 64, 60_000) {
            $0.field = .only(Contender.shapes + Contender.classicShapes)
        },
        get(
            "cache-1", "What a session remembers, GET 1 KB, one connection, client and server on one core", 1, 20_000
        ) { ($0.sharesCore, $0.field) = (true, .only(Contender.caches)) },
        get("cache-64", "What a session remembers, GET 1 KB, 64 connections", 64, 40_000) {
            $0.field = .only(Contender.caches)
        },
    ]

    private static let sockets: [Scenario] = [
        get(
            "ws-echo-1",
            "1 KB said and heard over a WebSocket, beside GETs of 1 KB, one at a time, client and server on one core",
            1, 20_000, .sockets
        ) { ($0.sharesCore, $0.field) = (true, .floor([Contender.sockets[0]])) },
        get("ws-echo-64", "1 KB said and heard over 64 WebSockets, beside GETs of 1 KB", 64, 60_000, .sockets) {
            $0.field = .floor([Contender.sockets[0]])
        },
        get(
            "ws-messages", "Messages of 16 MiB, beside GETs of 16 MiB, each whole in memory", 1, 200, .sockets
        ) {
            ($0.path, $0.bytesEach) = ("/16m", gibibyte / 64)
            ($0.sharesCore, $0.field) = (true, .floor([Contender.sockets[1]]))
        },
        Scenario(
            name: "ws-rest",
            title: "1,000 open WebSockets, ten seconds, one message a second each (CPU of the ten seconds for each)",
            kind: .inflight, server: .sockets, path: "/echo", connections: 1000, requests: 1000,
            field: .only([Contender.sockets[2]]), countsSyscalls: false),
    ]

    private static func get(
        _ name: String, _ title: String, _ connections: Int, _ requests: Int, _ server: Server = .plain,
        _ change: (inout Scenario) -> Void = { _ in }
    ) -> Scenario {
        var scenario = Scenario(
            name: name, title: title, kind: .get, server: server, connections: connections, requests: requests,
            field: server.speaksHTTP2 ? .http2 : .clients)
        change(&scenario)
        return scenario
    }

    private static func body(
        _ name: String, _ title: String, _ kind: Kind, _ server: Server, _ change: (inout Scenario) -> Void = { _ in }
    ) -> Scenario {
        var scenario = Scenario(
            name: name, title: title, kind: kind, server: server, path: "/1g", requests: 2, bytesEach: gibibyte,
            unit: .gibibyte, countsSyscalls: kind == .bulk)
        change(&scenario)
        return scenario
    }
}
