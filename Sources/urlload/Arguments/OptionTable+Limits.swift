// SPDX-License-Identifier: Apache-2.0

// Options for time limits, numbers and rates.

import URLLoading

extension OptionTable {
    static let limits: [OptionRule] = [
        OptionRule(.limits, nil, "timeout", "SECONDS", "idle timeout: end a load when the server is silent, default 60")
        {
            (options, text) throws(UsageError) in
            options.timeouts.idle = try OptionValue.seconds(text, "--timeout")
        }.also("read-timeout").like(wget: "-T SECONDS", httpie: "--timeout SECONDS"),
        OptionRule(
            .limits, nil, "connect-timeout", "SECONDS",
            "connect timeout, including lookup, proxies and TLS"
        ) { (options, text) throws(UsageError) in
            options.timeouts.connect = try OptionValue.secondsOrNone(text, "--connect-timeout")
        }.like(wget: "--connect-timeout=SECONDS"),
        OptionRule(.limits, nil, "expect100-timeout", "SECONDS", "the time that a body waits for a 100 (Continue)") {
            (options, text) throws(UsageError) in
            options.timeouts.expectContinue = try OptionValue.seconds(text, "--expect100-timeout")
        },
        OptionRule(.limits, "m", "max-time", "SECONDS", "time limit for the whole load") {
            (options, text) throws(UsageError) in
            options.timeouts.resource = try OptionValue.secondsOrNone(text, "--max-time")
        },
        OptionRule(
            .limits, nil, "max-filesize", "BYTES", "refuse a larger body: 500, 100k, 2m, 1g; exit code 63"
        ) { (options, text) throws(UsageError) in
            options.limits.bodySize = try OptionValue.speed(text, "--max-filesize", "bytes")
        },
        OptionRule(
            .limits, nil, "max-connections", "N", "connections per host, default 6; with -O that many URLs load at once"
        ) { (options, text) throws(UsageError) in
            options.connections.maximumPerHost = try OptionValue.count(text, "--max-connections", from: 1)
        },
        OptionRule(
            .limits, nil, "parallel-ranges", "N", "load N parts of the file at once, 1 to 16; auto for 4; with -o or -O"
        ) { (options, text) throws(UsageError) in
            guard text != "auto" else {
                options.connections.parallelRanges = .automatic
                return
            }
            let count = try OptionValue.count(text, "--parallel-ranges", from: 1)
            options.connections.parallelRanges = ParallelRanges(count)
        },
        OptionRule(.limits, nil, flag: "strict", "refuse responses that break rules of HTTP, instead of reading them") {
            $0.strictness = .strict
        },
        OptionRule(.limits, "0", flag: "http1.0", "send requests of HTTP/1.0, each on a connection of its own") {
            ($0.connections.httpVersions, $0.connections.speaksHTTP10) = (.http1Only, true)
        },
        OptionRule(.limits, nil, flag: "http1.1", "speak HTTP/1.1 only") {
            ($0.connections.httpVersions, $0.connections.speaksHTTP10) = (.http1Only, false)
        },
        OptionRule(.limits, nil, flag: "http2", "let https servers choose HTTP/2 (default)") {
            ($0.connections.httpVersions, $0.connections.speaksHTTP10) = (.automatic, false)
        },
        OptionRule(.limits, nil, flag: "http2-prior-knowledge", "use HTTP/2 without negotiation, also for http") {
            ($0.connections.httpVersions, $0.connections.speaksHTTP10) = (.http2PriorKnowledge, false)
        },
        OptionRule(
            .limits, nil, flag: "http3", "use HTTP/3 where an https server answers it, otherwise HTTP/2 or 1.1"
        ) { (options) throws(UsageError) in try options.connections.use(.http3Preferred, "--http3") },
        OptionRule(.limits, nil, flag: "http3-only", "use HTTP/3 only") { (options) throws(UsageError) in
            try options.connections.use(.http3PriorKnowledge, "--http3-only")
        },
        OptionRule(
            .limits, nil, flag: "tls-earlydata", "over HTTP/3 send GETs early (0-RTT): an attacker may repeat them"
        ) { (options) throws(UsageError) in
            try ConnectionOptions.requireHTTP3("--tls-earlydata")
            options.connections.sendsEarlyData = true
        }.undone { $0.connections.sendsEarlyData = false },
        OptionRule(
            .limits, nil, granted: "tr-encoding", "ignored: no transfer coding is asked for; --compressed compresses"),
    ]

    static let pace: [OptionRule] = [
        OptionRule(
            .limits, nil, "limit-rate", "SPEED", "maximum bytes per second in each direction: 500, 100k, 2m, 1g"
        ) { (options, text) throws(UsageError) in
            options.limits.rate = try OptionValue.speed(text, "--limit-rate")
        }.like(wget: "--limit-rate=SPEED"),
        OptionRule(.limits, "Z", switch: "parallel", "load all URLs at once", \.shared.isParallel),
        OptionRule(.limits, nil, "parallel-max", "N", "with -Z: the maximum at once, default 50") {
            (options, text) throws(UsageError) in
            options.shared.maximumParallel = try OptionValue.count(text, "--parallel-max", from: 1)
        },
        OptionRule(.limits, nil, granted: "parallel-immediate", "with -Z: do not wait to share a connection (always)"),
        OptionRule(.limits, nil, "rate", "N/UNIT", "begin at most N loads in a second, minute, hour or day: 2/s, 30/m")
        {
            (options, text) throws(UsageError) in
            options.shared.interval = try OptionValue.interval(text)
        }.like(wget: "-w SECONDS, --wait=SECONDS"),
        OptionRule(.limits, nil, granted: "tcp-nodelay", "send small pieces at once (always)"),
    ]
}

extension OptionValue {
    /// Parses `500`, `100k` or `2.5M` bytes a second; `nil` for 0, which means no limit.
    static func speed(
        _ text: String, _ option: String, _ unit: String = "bytes a second"
    ) throws(UsageError) -> Int64? {
        let units: [Character: Double] = ["b": 1, "k": 1024, "m": 1_048_576, "g": 1_073_741_824]
        let factor = text.last.flatMap { Character($0.lowercased()) }.flatMap { units[$0] }
        guard let number = Double(factor == nil ? text : String(text.dropLast())), number >= 0,
            number * (factor ?? 1) < 9e18
        else { throw UsageError("\(option) takes \(unit), such as 500, 100k or 2M, not \(text)") }
        let speed = Int64(number * (factor ?? 1))
        return speed == 0 ? nil : speed
    }

    /// Parses `2/s`, `30/m` or `10/15s`, loads per time; without a unit, per hour.
    static func interval(_ text: String) throws(UsageError) -> Duration {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
        var seconds = 3600.0
        if parts.count == 2, let unit = parts[1].last.flatMap({ units[$0] }) {
            let number = parts[1].dropLast()
            seconds = unit * (number.isEmpty ? 1 : Double(number) ?? 0)
        } else if parts.count != 1 {
            seconds = 0
        }
        guard let count = Double(parts[0]), count > 0, seconds > 0, seconds / count < 1e9 else {
            throw UsageError("--rate takes a number of loads and a unit, such as 2/s or 30/m, not \(text)")
        }
        return .seconds(seconds / count)
    }
}
