// SPDX-License-Identifier: Apache-2.0

// A measurement: a kind of request with its numbers and its server. A contender that does not support a scenario says
// so by its exit status.

struct Scenario {
    enum Kind: String {
        case get, bulk, handshake
        case resumed = "handshake-resumed"
        case inflight, start
        case uploadFile = "upload-file"
        case uploadMemory = "upload-memory"
        case download
        /// GETs that begin at a fixed rate, whatever the answers take.
        case paced
        /// A body of 1 GiB, with small GETs one after the other until it ends.
        case beside
    }
    enum Server {
        case plain, tls, tlsResuming, tlsFull, holding, http2, http2TLS, sockets
        /// HTTP/3 and HTTP/2 at one port; the contender chooses.
        case http3, http3Resuming, http3Full

        var isTLS: Bool { ![.plain, .holding, .http2, .sockets].contains(self) }
        var speaksHTTP2: Bool { self == .http2 || self == .http2TLS }
    }
    enum Unit { case request, gibibyte, process }
    /// Which contenders a scenario has.
    enum Field {
        /// The chosen ones.
        case clients
        /// The chosen ones, with the tools of HTTP/2 as the floor.
        case http2
        /// Bare sockets, this library, and variants of it.
        case floor([Contender])
        /// Variants of this library that are compared with each other.
        case only([Contender])
        /// The chosen ones that support far scenarios, and variants of this library.
        case peers([Contender])
    }

    var name: String
    var title: String
    var kind: Kind
    var server: Server
    var path = "/1k"
    /// The number of requests at a time.
    var connections = 1
    /// The limit of connections, if it is less than the number of requests at a time.
    var places = Int.max
    /// The number of requests of a contender of weight 1.
    var requests: Int
    var bytesEach = 1024
    var unit = Unit.request
    var field = Field.clients
    /// Whether system calls are counted as the difference of a short and a long run; otherwise a dash is printed.
    var countsSyscalls = true
    /// Whether client and server share a core. With one request at a time they alternate, and on two cores the results
    /// jump between two modes of the scheduler.
    var sharesCore = false
    /// The bytes of a piece of a streamed upload.
    var piece = 64 << 10
    /// Requests a second, in `paced`.
    var rate = 10_000
    /// The path to the server; nil for the loopback as it is.
    var distance: Distance?
    /// Whether a measured request opens a connection instead of reusing that of an earlier one. The warm-up then goes
    /// past the relay.
    var usesNewConnections = false

    /// Returns the chosen contenders that support the scenario.
    func contenders(_ chosen: [Contender]) -> [Contender] {
        let found =
            switch field {
            case .clients: chosen
            case .http2: Contender.http2 + chosen
            case .floor(let others): chosen.filter { ["rawc", "ours"].contains($0.executable) } + others
            case .only(let others): others
            case .peers(let others): chosen.filter(\.supportsFar) + others
            }
        return found.filter { $0.isBuilt && (kind == .start || !$0.onlyStarts) }
    }

    var hasLatencies: Bool { kind == .paced || kind == .beside }
    var queues: Bool { places < connections }

    static let gibibyte = 1 << 30

    /// The scenario used to count system calls: strace makes a GiB too slow, so smaller bodies are counted.
    var counted: (scenario: Scenario, perUnit: Double) {
        guard kind == .bulk else { return (self, 1) }
        var part = self
        part.path = "/64m"
        part.bytesEach = Self.gibibyte / 16
        return (part, 16)
    }

    /// Returns the number of requests: fewer for slow contenders, so that rounds take about the same time.
    func requests(of contender: Contender, scale: Double) -> Int {
        // The distance takes most of the time, so all contenders have the same number.
        if distance != nil { return max(connections, Int(Double(requests) * scale)) }
        switch kind {
        case .start, .beside: return 1
        case .bulk, .uploadFile, .uploadMemory, .download: return contender.weight < 0.2 || scale < 1 ? 1 : requests
        case .inflight: return contender.isFoundation ? 1000 : requests
        case .get where queues: return requests
        case .paced: return Int(Double(requests) * scale)
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
        case .inflight, .paced, .beside: return (1, 2)
        case .handshake, .resumed: return (64, 64 + 160)
        case .get where bytesEach > 1 << 20: return (4, 12)
        case .get:
            let short = max(2 * connections, 200)
            return (short, short + max(4 * connections, 1000, Int(4000 * contender.weight)))
        }
    }

    var warm: Int {
        if distance != nil { return 1 }
        return switch kind {
        case .get where bytesEach > 1 << 20: 4
        // Most clients wait for 40 ms in each.
        case .get where path == "/apart": 8
        case .get, .paced: max(500, 4 * min(connections, places))
        case .bulk, .beside, .inflight, .uploadFile, .uploadMemory, .download: 1
        case .handshake, .resumed: 2 * connections
        case .start: 0
        }
    }
}

extension Scenario.Kind {
    static var handshakes: [Self] { [.handshake, .resumed] }
}
