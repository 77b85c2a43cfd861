// SPDX-License-Identifier: Apache-2.0

// The snapshots of sessions as OpenMetrics text (OpenMetrics 1.0, which Prometheus reads).

package struct OpenMetricsText: Sendable {
    /// The text, each line with its end.
    package private(set) var text = ""

    private typealias Sample = (labels: [(name: String, value: String)], value: Int64)
    /// The sessions, each with the labels that tell it from the others.
    private let sessions: [(labels: [(name: String, value: String)], snapshot: SessionSnapshot)]

    package init(_ snapshot: SessionSnapshot) { self.init([([], snapshot)]) }

    /// The text of several sessions: a family of metrics stands once, and each of its samples names the session.
    package init(named snapshots: [String: SessionSnapshot]) {
        self.init(snapshots.sorted { $0.key < $1.key }.map { ([("session", $0.key)], $0.value) })
    }

    private init(_ sessions: [(labels: [(name: String, value: String)], snapshot: SessionSnapshot)]) {
        self.sessions = sessions
        gauge("loads", "Loads that are running or suspended.") { [([], Int64($0.loads))] }
        gauge("connections", "Connections by host and state.") { $0.hosts.flatMap(Self.connections) }
        gauge("waiting_loads", "Loads that wait for a connection or a stream.") {
            $0.hosts.map { Self.sample($0, $0.waiting) }
        }
        gauge("http2_streams", "Open streams of HTTP/2 connections.") {
            $0.hosts.filter { !$0.streams.isEmpty }.map { Self.sample($0, $0.streams.reduce(0, &+)) }
        }
        gauge("rate_limited_requests", "Requests that a rate holds back.") {
            $0.hosts.compactMap { host in host.held.map { Self.sample(host, $0) } }
        }
        gauge("circuit_open", "Hosts to which a circuit breaker makes no requests.") {
            $0.hosts.filter { $0.isRefused == true }.map { Self.sample($0, 1) }
        }
        counter("received_bytes", "bytes", "Bytes of response bodies.") { Self.traffic($0) { $0.bytesReceived } }
        counter("sent_bytes", "bytes", "Bytes of request bodies.") { Self.traffic($0) { $0.bytesSent } }
        counter("finished_loads", nil, "Loads that got their response.") { Self.traffic($0) { Int64($0.finished) } }
        counter("failed_loads", nil, "Loads that ended with an error.") { Self.traffic($0) { Int64($0.failed) } }
        counter("cancelled_loads", nil, "Loads that the program gave up.") { Self.traffic($0) { Int64($0.cancelled) } }
        counter("tolerated_violations", nil, "Responses that broke a rule of HTTP and were read, by the rule.") {
            $0.total.tolerated.sorted { $0.key < $1.key }.map { ([("rule", $0.key)], Int64($0.value)) }
        }
        if sessions.contains(where: { $0.snapshot.external != nil }) {
            counter("external_cache_lookups", nil, "Look-ups in the external cache.") { $0.external?.lookUps ?? [] }
            counter("external_cache_changes", nil, "What was to be stored there or removed.") {
                $0.external?.changes ?? []
            }
            counter("external_cache_faults", nil, "Calls without an answer, and damaged records.") {
                $0.external?.faults ?? []
            }
        }
        gauge("hidden_hosts", "Hosts that the others leave out.") { [([], Int64($0.hiddenHosts))] }
        text += "# EOF\n"
    }

    private static func sample(_ host: SessionSnapshot.Host, _ value: Int) -> Sample {
        ([("host", host.name)], Int64(value))
    }

    private static func connections(_ host: SessionSnapshot.Host) -> [Sample] {
        [("connecting", host.connecting), ("active", host.active), ("idle", host.idle), ("resting", host.resting)]
            .map { ([("host", host.name), ("state", $0.0)], Int64($0.1)) }
    }

    /// The values of all hosts, and those that no host of the snapshot has, so that the sum is the session's.
    private static func traffic(
        _ snapshot: SessionSnapshot, _ value: (SessionSnapshot.Traffic) -> Int64
    ) -> [Sample] {
        let samples: [Sample] = snapshot.hosts.map { ([("host", $0.name)], value($0.traffic)) }
        return samples + [([("host", "")], max(0, value(snapshot.total) &- samples.reduce(0) { $0 &+ $1.value }))]
    }

    private mutating func gauge(_ name: String, _ help: String, _ samples: (SessionSnapshot) -> [Sample]) {
        add(name, "gauge", nil, help, samples, suffix: "")
    }

    private mutating func counter(
        _ name: String, _ unit: String?, _ help: String, _ samples: (SessionSnapshot) -> [Sample]
    ) {
        add(name, "counter", unit, help, samples, suffix: "_total")
    }

    private mutating func add(
        _ name: String, _ kind: String, _ unit: String?, _ help: String, _ samples: (SessionSnapshot) -> [Sample],
        suffix: String
    ) {
        let name = "urlloading_\(name)"
        text += "# TYPE \(name) \(kind)\n"
        if let unit { text += "# UNIT \(name) \(unit)\n" }
        text += "# HELP \(name) \(help)\n"
        for session in sessions {
            for (labels, value) in samples(session.snapshot) {
                let shown = (session.labels + labels).map { "\($0.name)=\"\(Self.escaped($0.value))\"" }
                    .joined(separator: ",")
                text += "\(name)\(suffix)\(shown.isEmpty ? "" : "{\(shown)}") \(value)\n"
            }
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
