// All that an origin shares between its connections and its test: a value under a lock.

import URLLoadingIO

struct OriginState: ServerState {
    var routes: [String: TestOrigin.Route] = [:]
    var faults: [(connection: Int?, fault: TestOrigin.Fault)] = []
    var schedule: TestOrigin.FaultSchedule?
    var counts = TestOrigin.Counts()
    var requests: Newest<TestOrigin.RecordedRequest>
    var connections: [Int: OriginConnection] = [:]
    var isStopped = false
    var watchers: [PollSlot] = []

    init(recordedRequests: Int) { requests = Newest(recordedRequests) }

    /// What a connection (`exchange` 0) or one of its exchanges (from 1) is going to meet.
    func faults(connection: Int, exchange: Int) -> [TestOrigin.Fault] {
        var met = faults.filter { $0.connection == nil || $0.connection == connection }.map(\.fault)
        if let scheduled = schedule?.fault(connection: connection, exchange: exchange) { met.append(scheduled) }
        return met.filter { $0.point.isOfConnection == (exchange == 0) }
    }
}
