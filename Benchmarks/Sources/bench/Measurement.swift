// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The line of output of a contender.
struct Line: Decodable {
    var requests: Int
    var bytes: Int
    var wall: Double
    var cpu: Double
    var switches: Int
    var allocations: Int
    var maxrss: Int
    var rss: Int
    /// Latencies in microseconds; -1 in scenarios that do not measure them.
    var p50: Double
    var p99: Double
}

/// The results of one contender in one scenario; nil is printed as a dash.
struct Result {
    var contender: Contender
    /// CPU seconds for each unit, by round; nil if the round failed.
    var cpu: [Double?] = []
    /// Wall-clock seconds for each unit.
    var wall: [Double] = []
    var switches: [Double] = []
    var maxRSS: [Double] = []
    var rssEach: [Double] = []
    var p50: [Double] = []
    var p99: [Double] = []
    var allocations: Double?
    var syscalls: Double?
    /// The reason why there are no numbers, or a caveat about them.
    var remark: String?
    var unsupported = false
}

/// Rounds over all contenders of a scenario; each round begins with a different contender.
struct Measurement {
    let servers: Servers
    let rounds: Int
    let scale: Double

    func measure(_ scenario: Scenario, _ contenders: [Contender]) -> [Result] {
        servers.pinWorker(scenario.sharesCore)
        var results = contenders.map { Result(contender: $0) }
        for round in 0..<rounds {
            for step in results.indices {
                let index = (round + step) % results.count
                guard !results[index].unsupported else { continue }
                measureOnce(scenario, &results[index])
            }
        }
        // Counts do not depend on the distance, and strace would delay the client more than the relay does.
        guard scenario.distance == nil else { return results }
        for index in results.indices
        where !results[index].unsupported && results[index].cpu.contains(where: { $0 != nil }) {
            count(scenario, &results[index])
        }
        return results
    }

    private func measureOnce(_ scenario: Scenario, _ result: inout Result) {
        let contender = result.contender
        let requests = scenario.requests(of: contender, scale: scale)
        let before = Scenario.Kind.handshakes.contains(scenario.kind) ? servers.handshakes().count : 0
        do {
            if scenario.kind == .start { return try measureStart(scenario, &result) }
            let (line, finished) = try launch(scenario, contender, requests: requests)
            guard let line else {
                result.unsupported = true
                return
            }
            _ = finished
            let units = Double(line.requests)
            result.cpu.append(line.cpu / units)
            result.wall.append(line.wall / units)
            result.switches.append(Double(line.switches) / units)
            result.maxRSS.append(Double(line.maxrss))
            result.rssEach.append(Double(line.rss) / units)
            result.p50.append(line.p50)
            result.p99.append(line.p99)
            checkHandshakes(scenario, from: before, &result)
        } catch {
            result.cpu.append(nil)
            result.remark = "\(error)"
        }
    }

    /// Measures the whole process with the kernel's counters, as the average of several runs.
    private func measureStart(_ scenario: Scenario, _ result: inout Result) throws {
        let times = scale < 1 ? 3 : 10
        var cpu = 0.0
        var wall = 0.0
        var switches = 0
        var rss = 0
        for _ in 0..<times {
            let (line, finished) = try launch(scenario, result.contender, requests: 1)
            guard let line else {
                result.unsupported = true
                return
            }
            cpu += finished.usage.cpu
            wall += finished.wall
            switches += finished.usage.switches
            rss = max(rss, line.maxrss)
        }
        result.cpu.append(cpu / Double(times))
        result.wall.append(wall / Double(times))
        result.switches.append(Double(switches) / Double(times))
        result.maxRSS.append(Double(rss))
    }

    /// Verifies the type of handshakes, because a number without its condition is misleading: full handshakes must be
    /// full, resumed ones resumed.
    private func checkHandshakes(_ scenario: Scenario, from before: Int, _ result: inout Result) {
        guard Scenario.Kind.handshakes.contains(scenario.kind) else { return }
        let seen = servers.handshakes().dropFirst(before + scenario.warm)
        let share = Double(seen.count { $0 == UInt8(ascii: "r") }) / Double(max(seen.count, 1))
        switch scenario.kind {
        case .handshake where share > 0: result.remark = "\(percent(share)) resumed"
        case .resumed where share < 0.95: result.remark = "only \(percent(share)) resumed"
        default: break
        }
    }

    /// Returns nil if the contender does not support the scenario.
    private func launch(
        _ scenario: Scenario, _ contender: Contender, requests: Int, prefix: [String] = [],
        environment: [String: String] = [:]
    ) throws -> (Line?, Finished) {
        let connections = scenario.kind == .inflight && scenario.server == .holding ? requests : scenario.connections
        let isTLS = scenario.server.isTLS
        let arguments =
            prefix + (isTLS && contender.isFoundation ? servers.trusting : []) + [
                contender.path, scenario.kind.rawValue, try servers.url(scenario, requests: requests), "\(connections)",
                "\(requests)",
            ] + (isTLS ? [servers.cafile] : [])
        let environment = contender.environment.merging(environment) { $1 }.merging(
            [
                "BENCH_WARM": "\(scenario.warm)", "BENCH_WARM_URL": try servers.warmURL(scenario),
                "BENCH_SOURCE": "\(servers.directory)/www/1g", "BENCH_LENGTH": "\(scenario.bytesEach)",
                "BENCH_TARGET": servers.target, "BENCH_PROXY": servers.proxy, "BENCH_PIECE": "\(scenario.piece)",
                "BENCH_PLACES": "\(min(connections, scenario.places))", "BENCH_RATE": "\(scenario.rate)",
                "BENCH_BESIDE_URL": servers.besideURL, "SWIFT_BACKTRACE": "enable=no",
            ]
            .merging(scenario.sharesCore ? ["BENCH_CORE": "0"] : [:]) { $1 }
            .merging(scenario.usesNewConnections ? ["BENCH_NEW": "1"] : [:]) { $1 }
            .merging(scenario.server.speaksHTTP2 ? ["BENCH_HTTP2": "1"] : [:]) { $1 }
        ) { $1 }
        let finished = try run(arguments, environment: environment)
        if finished.status == 77 { return (nil, finished) }
        guard finished.status == 0 else { throw Failure("ended with \(finished.status)") }
        guard let line = try? JSONDecoder().decode(Line.self, from: Data(finished.output.utf8)) else {
            throw Failure("no line: \(finished.output)")
        }
        // wrk runs for a time, not for a number of requests.
        guard line.requests == requests || contender.isForeign, line.bytes == line.requests * scenario.bytesEach else {
            throw Failure("\(line.bytes) bytes for \(requests) requests")
        }
        return (line, finished)
    }

    // MARK: - Counts, in rounds of their own

    private func count(_ scenario: Scenario, _ result: inout Result) {
        let contender = result.contender
        guard !contender.isForeign else { return }
        do {
            let requests = scenario.requests(of: contender, scale: min(scale, 0.2))
            let preload = ["LD_PRELOAD": "\(Contender.directory)/libmalloccount.so"]
            if let line = try launch(scenario, contender, requests: requests, environment: preload).0,
                line.allocations >= 0
            {
                result.allocations = Double(line.allocations) / Double(line.requests)
            }
            guard scenario.countsSyscalls else { return }
            let (counted, perUnit) = scenario.counted
            let runs = counted.syscallRuns(of: contender)
            let short = runs.short == 0 ? 0 : try syscalls(counted, contender, runs.short)
            let long = try syscalls(counted, contender, runs.long)
            // On a busy machine the short run may take longer than the long one; then there is no result.
            guard long > short else { return }
            result.syscalls = perUnit * Double(long - short) / Double(runs.long - runs.short)
        } catch {
            result.remark = "counting: \(error)"
        }
    }

    /// Counts the system calls of the whole process; the difference of a short and a long run removes those made once.
    private func syscalls(_ scenario: Scenario, _ contender: Contender, _ requests: Int) throws -> Int {
        let table = "\(servers.directory)/strace"
        _ = try launch(scenario, contender, requests: requests, prefix: ["strace", "-f", "-qq", "-c", "-o", table])
        let lines = try String(contentsOfFile: table, encoding: .utf8).split(separator: "\n")
        guard let total = lines.last(where: { $0.hasSuffix("total") }),
            case let fields = total.split(separator: " "), fields.count > 3, let calls = Int(fields[3])
        else { throw Failure("strace gave no total") }
        return calls
    }
}

func percent(_ share: Double) -> String { "\(Int((share * 100).rounded()))%" }
