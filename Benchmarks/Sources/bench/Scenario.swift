// SPDX-License-Identifier: Apache-2.0

// A measurement: a kind of request with its numbers and its server. A contender supports some kinds.

struct Scenario {
    enum Kind: String {
        case get, bulk, handshake
        case resumed = "handshake-resumed"
        case inflight, start
        case uploadFile = "upload-file"
        case uploadMemory = "upload-memory"
        case download
    }
    enum Server { case plain, tls, tlsResuming, tlsFull, holding, http2, http2TLS, sockets }
    enum Unit { case request, gibibyte, process }

    var name: String
    var title: String
    var kind: Kind
    var server: Server
    var path: String
    var connections: Int
    /// The number of requests of a contender of weight 1.
    var requests: Int
    var bytesEach: Int
    var unit = Unit.request
    /// Whether system calls are counted as the difference of a short and a long run; otherwise a dash is printed.
    var countsSyscalls = true
    /// Whether the scenario compares the library's APIs instead of clients.
    var comparesShapes = false
    /// Whether the scenario compares caches.
    var comparesCaches = false
    /// Whether the connection is tunnelled through a proxy and opened before the measurement.
    var isTunnelled = false

    /// Returns the chosen contenders that support the scenario.
    func contenders(_ chosen: [Contender]) -> [Contender] {
        func only(_ executables: String..., and others: [Contender] = []) -> [Contender] {
            (chosen.filter { executables.contains($0.executable) } + others).filter(\.isBuilt)
        }
        if comparesShapes { return (Contender.shapes + Contender.classicShapes).filter(\.isBuilt) }
        if server == .sockets {
            let others = kind == .inflight ? [Contender.sockets[2]] : [Contender.sockets[bytesEach > 1024 ? 1 : 0]]
            return kind == .inflight
                ? others.filter(\.isBuilt) : only("rawc", "ours", and: others).filter { $0.name != "ours-loop" }
        }
        if comparesCaches { return Contender.caches.filter(\.isBuilt) }
        if isTunnelled { return only("rawc", "ours", and: [Contender.roads[1]]) }
        if Kind.transfers.contains(kind) { return only("rawc", "ours") }
        guard server == .http2 || server == .http2TLS else { return chosen }
        if kind == .bulk { return only("rawc", "ours", and: [Contender.roads[0]]) }
        return Contender.http2.filter(\.isBuilt) + (server == .http2 ? only("ours") : only("ours", "ahc"))
    }

    /// Whether client and server share a core. With one request at a time they alternate; on two cores the results jump
    /// between two modes of the scheduler.
    var sharesCore: Bool { kind == .get && connections == 1 }

    static let gibibyte = 1 << 30

    /// The scenario used to count system calls: strace makes a GiB too slow, so smaller bodies are counted.
    var counted: (scenario: Scenario, perUnit: Double) {
        guard kind == .bulk else { return (self, 1) }
        var part = self
        part.path = "/64m"
        part.bytesEach = Self.gibibyte / 16
        return (part, 16)
    }

    static let all: [Scenario] = [
        .get(
            "get-1", "GET 1 KB, one connection, client and server on one core", .plain, connections: 1, requests: 20_000
        ),
        .get("get-64", "GET 1 KB, 64 connections", .plain, connections: 64, requests: 60_000),
        .get("get-256", "GET 1 KB, 256 connections", .plain, connections: 256, requests: 60_000),
        .get("get-tls-64", "GET 1 KB over TLS, 64 connections", .tls, connections: 64, requests: 40_000),
        .get(
            "get-h2-1", "GET 1 KB over HTTP/2, one at a time, client and server on one core", .http2, connections: 1,
            requests: 20_000),
        .get("get-h2-64", "GET 1 KB over HTTP/2, 64 at a time", .http2, connections: 64, requests: 60_000),
        .get(
            "get-h2-tls-1", "GET 1 KB over HTTP/2 and TLS, one at a time, client and server on one core", .http2TLS,
            connections: 1, requests: 20_000),
        .get(
            "get-h2-tls-64", "GET 1 KB over HTTP/2 and TLS, 64 at a time", .http2TLS, connections: 64, requests: 40_000),
        .bulk("bulk", "1 GiB, discarded", .plain),
        .bulk("bulk-tls", "1 GiB over TLS, discarded", .tls),
        .tunnelled(
            "bulk-tunnel", "1 GiB over TLS, discarded, directly and through an HTTP proxy that splices (CONNECT)"),
        .bulk("bulk-h2-tls", "1 GiB over TLS, discarded, over HTTP/2 (ours) and HTTP/1.1", .http2TLS),
        .transfer("upload-file", "1 GiB up from a file", .uploadFile, .holding, "/sink"),
        .transfer("upload-memory", "1 GiB up from memory, in pieces of 256 KiB", .uploadMemory, .holding, "/sink"),
        .transfer("download", "1 GiB down to a file in memory", .download, .plain, "/1g"),
        .handshake("handshake", "New TLS connection for each request, 16 at a time", .handshake, .tlsFull, 800),
        .handshake(
            "handshake-resumed", "The same, TLS session resumed", .resumed, .tlsResuming, 1200),
        Scenario(
            name: "inflight", title: "2,000 requests in flight (FoundationNetworking: 1,000)", kind: .inflight,
            server: .holding, path: "/hold/", connections: 2000, requests: 2000, bytesEach: 1024,
            countsSyscalls: false),
        Scenario(
            name: "start", title: "Process start to first response and exit, http", kind: .start, server: .plain,
            path: "/1k", connections: 1, requests: 1, bytesEach: 1024, unit: .process),
        .get(
            "ws-echo-1",
            "1 KB said and heard over a WebSocket, beside GETs of 1 KB, one at a time, client and server on one core",
            .sockets, connections: 1, requests: 20_000),
        .get(
            "ws-echo-64", "1 KB said and heard over 64 WebSockets, beside GETs of 1 KB", .sockets, connections: 64,
            requests: 60_000),
        Scenario(
            name: "ws-messages", title: "Messages of 16 MiB, beside GETs of 16 MiB, each whole in memory", kind: .get,
            server: .sockets,
            path: "/16m", connections: 1, requests: 200, bytesEach: gibibyte / 64),
        Scenario(
            name: "ws-rest",
            title: "1,000 open WebSockets, ten seconds, one message a second each (CPU of the ten seconds for each)",
            kind: .inflight, server: .sockets, path: "/echo", connections: 1000, requests: 1000, bytesEach: 1024,
            countsSyscalls: false),
        .shapes(
            "shapes-1", "Our shapes, GET 1 KB, one connection, client and server on one core", connections: 1,
            requests: 20_000),
        .caches(
            "cache-1", "What a session remembers, GET 1 KB, one connection, client and server on one core",
            connections: 1, requests: 20_000),
        .caches("cache-64", "What a session remembers, GET 1 KB, 64 connections", connections: 64, requests: 40_000),
        .shapes("shapes-64", "Our shapes, GET 1 KB, 64 connections", connections: 64, requests: 60_000),
    ]

    private static func caches(_ name: String, _ title: String, connections: Int, requests: Int) -> Scenario {
        var scenario = get(name, title, .plain, connections: connections, requests: requests)
        scenario.comparesCaches = true
        return scenario
    }

    private static func shapes(_ name: String, _ title: String, connections: Int, requests: Int) -> Scenario {
        var scenario = get(name, title, .plain, connections: connections, requests: requests)
        scenario.comparesShapes = true
        return scenario
    }

    private static func tunnelled(_ name: String, _ title: String) -> Scenario {
        var scenario = bulk(name, title, .tls)
        scenario.isTunnelled = true
        return scenario
    }

    static func get(_ name: String, _ title: String, _ server: Server, connections: Int, requests: Int) -> Scenario {
        Scenario(
            name: name, title: title, kind: .get, server: server, path: "/1k", connections: connections,
            requests: requests, bytesEach: 1024)
    }

    static func bulk(_ name: String, _ title: String, _ server: Server) -> Scenario {
        Scenario(
            name: name, title: title, kind: .bulk, server: server, path: "/1g", connections: 1, requests: 2,
            bytesEach: gibibyte, unit: .gibibyte)
    }

    static func transfer(
        _ name: String, _ title: String, _ kind: Kind, _ server: Server, _ path: String
    ) -> Scenario {
        Scenario(
            name: name, title: title, kind: kind, server: server, path: path, connections: 1, requests: 2,
            bytesEach: gibibyte, unit: .gibibyte, countsSyscalls: false)
    }

    static func handshake(
        _ name: String, _ title: String, _ kind: Kind, _ server: Server, _ requests: Int
    ) -> Scenario {
        Scenario(
            name: name, title: title, kind: kind, server: server, path: "/1k", connections: 16, requests: requests,
            bytesEach: 1024)
    }

    /// Returns the number of requests: fewer for slow contenders, so that rounds take about the same time.
    func requests(of contender: Contender, scale: Double) -> Int {
        switch kind {
        case .start: return 1
        case .bulk, .uploadFile, .uploadMemory, .download: return contender.weight < 0.2 || scale < 1 ? 1 : requests
        case .inflight: return contender.isFoundation ? 1000 : requests
        case .get where bytesEach > 1 << 20: return scale < 1 ? 40 : requests
        case .get, .handshake, .resumed:
            return max(4 * connections, 200, Int(Double(requests) * contender.weight * scale))
        }
    }

    /// Returns the lengths of the short and the long run between which system calls are counted.
    func syscallRuns(of contender: Contender) -> (short: Int, long: Int) {
        switch kind {
        case .start: return (0, 1)
        case .bulk, .uploadFile, .uploadMemory, .download: return (1, contender.weight < 0.2 ? 5 : 13)
        case .inflight: return (1, 2)
        case .handshake, .resumed: return (64, 64 + 160)
        case .get where bytesEach > 1 << 20: return (4, 12)
        case .get:
            let short = max(2 * connections, 200)
            return (short, short + max(4 * connections, 1000, Int(4000 * contender.weight)))
        }
    }

    var warm: Int {
        switch kind {
        case .get where bytesEach > 1 << 20: 4
        case .get: max(500, 4 * connections)
        case .bulk, .inflight, .uploadFile, .uploadMemory, .download: 1
        case .handshake, .resumed: 2 * connections
        case .start: 0
        }
    }
}
extension Scenario.Kind {
    static var handshakes: [Self] { [.handshake, .resumed] }
    static var transfers: [Self] { [.uploadFile, .uploadMemory, .download] }
}
