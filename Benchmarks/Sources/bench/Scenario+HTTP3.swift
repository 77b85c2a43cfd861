// SPDX-License-Identifier: Apache-2.0

// Scenarios over HTTP/3, beside the same over HTTP/2. They run only with `--http3` or by name.

extension Scenario {
    static let http3: [Scenario] = [
        quic("h3-get-1", "GET 1 KB, one at a time, client and server on one core", 1, 20_000) { $0.sharesCore = true },
        quic("h3-get-64", "GET 1 KB, 64 at a time, one connection", 64, 40_000),
        // The server permits 1,024 requests at a time on a connection.
        quic("h3-get-2000", "GET 1 KB, 2,000 at a time", 2_000, 40_000),
        // Loads that run at once would share a connection.
        quic("h3-new", "GET 1 KB on a new connection each, full handshakes, client and server on one core", 1, 800) {
            ($0.kind, $0.server, $0.usesNewConnections, $0.sharesCore) = (.handshake, .http3Full, true, true)
        },
        quic("h3-resumed", "GET 1 KB on a new connection each, TLS session resumed, on one core", 1, 800) {
            ($0.kind, $0.server, $0.usesNewConnections, $0.sharesCore) = (.resumed, .http3Resuming, true, true)
        },
        quic("h3-bulk", "1 GiB, discarded", 1, 2) {
            ($0.kind, $0.path, $0.bytesEach, $0.unit) = (.bulk, "/1g", gibibyte, .gibibyte)
            $0.countsSyscalls = false
        },
    ]

    private static func quic(
        _ name: String, _ title: String, _ connections: Int, _ requests: Int,
        _ change: (inout Scenario) -> Void = { _ in }
    ) -> Scenario {
        var scenario = Scenario(
            name: name, title: "\(title), over HTTP/3 and HTTP/2", kind: .get, server: .http3,
            connections: connections, requests: requests, field: .only(Contender.http3))
        change(&scenario)
        return scenario
    }
}

/// The text before the tables of a page that has scenarios of HTTP/3 only.
let http3Introduction = """
    # Benchmarks of HTTP/3

    Clients against nginx on loopback, one machine, over HTTP/3 and over HTTP/2 with TLS, in interleaved rounds. CPU is
    the client's user and system time for each request or GiB, median and best round; `x raw` is the ratio to libcurl
    over HTTP/3. The other columns are those of the other pages.

    | contender | |
    |---|---|
    | `curl-h3`, `curl-h2` | libcurl's multi interface |
    | `ours-h3`, `ours-h2` | URLLoading, built with the trait `HTTP3`, on the default pool |
    | `ours-h3-loop` | the same on the event loop's executor |

    The loopback loses nothing, and TCP has segments of 64 KiB there: what HTTP/3 is for does not show.
    """
