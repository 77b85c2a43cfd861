// SPDX-License-Identifier: Apache-2.0

// The state shared by an origin's connections and its test: a value under a lock.

struct OriginState: RecordingState {
    var record: ServerRecord<OriginConnection>
    var faults: [(connection: Int?, fault: HTTPTestServer.Fault)] = []
    var schedule: HTTPTestServer.FaultSchedule?

    init(recordedRequests: Int) { record = ServerRecord(recordedRequests: recordedRequests) }

    var shown: String { "\(record.counts); requests: \(record.requests.all.shown())" }

    /// Returns the faults that apply to a connection (`exchange` 0) or to one of its exchanges (from 1).
    func faults(connection: Int, exchange: Int) -> [HTTPTestServer.Fault] {
        var met = faults.filter { $0.connection == nil || $0.connection == connection }.map(\.fault)
        if let scheduled = schedule?.fault(connection: connection, exchange: exchange) { met.append(scheduled) }
        return met.filter { $0.point.isOfConnection == (exchange == 0) }
    }
}
