// SPDX-License-Identifier: Apache-2.0

// The snapshot of a session as OpenMetrics text (OpenMetrics 1.0, which Prometheus reads).

package struct OpenMetricsText: Sendable {
    /// The text, each line with its end.
    package private(set) var text = ""

    package init(_ snapshot: SessionSnapshot) {
        gauge("loads", "Loads that are running or suspended.", [([], Int64(snapshot.loads))])
        gauge("connections", "Connections by host and state.", snapshot.hosts.flatMap(Self.connections))
        gauge(
            "waiting_loads", "Loads that wait for a connection or a stream.",
            snapshot.hosts.map { ([("host", $0.name)], Int64($0.waiting)) })
        gauge(
            "http2_streams", "Open streams of HTTP/2 connections.",
            snapshot.hosts.filter { !$0.streams.isEmpty }
                .map { ([("host", $0.name)], Int64($0.streams.reduce(0, +))) })
        gauge(
            "rate_limited_requests", "Requests that a rate holds back.",
            snapshot.hosts.compactMap { host in host.held.map { ([("host", host.name)], Int64($0)) } })
        gauge(
            "circuit_open", "Hosts to which a circuit breaker makes no requests.",
            snapshot.hosts.filter { $0.isRefused == true }.map { ([("host", $0.name)], 1) })
        counter("received_bytes", "bytes", "Bytes of response bodies.", traffic(snapshot) { $0.bytesReceived })
        counter("sent_bytes", "bytes", "Bytes of request bodies.", traffic(snapshot) { $0.bytesSent })
        counter("finished_loads", nil, "Loads that got their response.", traffic(snapshot) { Int64($0.finished) })
        counter("failed_loads", nil, "Loads that ended with an error.", traffic(snapshot) { Int64($0.failed) })
        counter(
            "tolerated_violations", nil, "Responses that broke a rule of HTTP and were read, by the rule.",
            snapshot.total.tolerated.sorted { $0.key < $1.key }.map { ([("rule", $0.key)], Int64($0.value)) })
        if let external = snapshot.external {
            counter("external_cache_lookups", nil, "Look-ups in the external cache.", external.lookUps)
            counter("external_cache_changes", nil, "What was to be stored there or removed.", external.changes)
            counter("external_cache_faults", nil, "Calls without an answer, and damaged records.", external.faults)
        }
        gauge("hidden_hosts", "Hosts that the others leave out.", [([], Int64(snapshot.hiddenHosts))])
        text += "# EOF\n"
    }

    private typealias Sample = (labels: [(name: String, value: String)], value: Int64)

    private static func connections(_ host: SessionSnapshot.Host) -> [Sample] {
        [("connecting", host.connecting), ("active", host.active), ("idle", host.idle), ("resting", host.resting)]
            .map { ([("host", host.name), ("state", $0.0)], Int64($0.1)) }
    }

    /// The values of all hosts, and those that no host of the snapshot has, so that the sum is the session's.
    private func traffic(
        _ snapshot: SessionSnapshot, _ value: (SessionSnapshot.Traffic) -> Int64
    ) -> [Sample] {
        let samples: [Sample] = snapshot.hosts.map { ([("host", $0.name)], value($0.traffic)) }
        return samples + [([("host", "")], max(0, value(snapshot.total) - samples.reduce(0) { $0 + $1.value }))]
    }

    private mutating func gauge(_ name: String, _ help: String, _ samples: [Sample]) {
        add(name, "gauge", nil, help, samples, suffix: "")
    }

    private mutating func counter(_ name: String, _ unit: String?, _ help: String, _ samples: [Sample]) {
        add(name, "counter", unit, help, samples, suffix: "_total")
    }

    private mutating func add(
        _ name: String, _ kind: String, _ unit: String?, _ help: String, _ samples: [Sample], suffix: String
    ) {
        let name = "urlloading_\(name)"
        text += "# TYPE \(name) \(kind)\n"
        if let unit { text += "# UNIT \(name) \(unit)\n" }
        text += "# HELP \(name) \(help)\n"
        for (labels, value) in samples {
            let shown = labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
            text += "\(name)\(suffix)\(shown.isEmpty ? "" : "{\(shown)}") \(value)\n"
        }
    }

    private static func escaped(_ value: String) -> String {
        value.reduce(into: "") { text, character in
            switch character {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.append(character)
            }
        }
    }
}

extension StoreCounts {
    fileprivate typealias Samples = [(labels: [(name: String, value: String)], value: Int64)]

    fileprivate var lookUps: Samples { Self.samples("result", [("found", found), ("missing", missing)]) }
    fileprivate var changes: Samples {
        Self.samples("kind", [("stored", stored), ("removed", removed), ("too_large", left)])
    }
    fileprivate var faults: Samples {
        Self.samples("kind", [("damaged", damaged), ("failed", failed), ("late", late), ("skipped", skipped)])
    }

    private static func samples(_ label: String, _ values: [(String, Int)]) -> Samples {
        values.map { ([(label, $0.0)], Int64($0.1)) }
    }
}
