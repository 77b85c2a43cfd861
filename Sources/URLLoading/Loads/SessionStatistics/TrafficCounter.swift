// SPDX-License-Identifier: Apache-2.0

// Counts what the loads of a session move, by origin.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class TrafficCounter: LoadObserver {
    private struct State: Sendable {
        var total = SessionSnapshot.Traffic()
        var origins: [String: SessionSnapshot.Traffic] = [:]
    }
    private let state = Lock(State())
    /// Origins beyond that are counted in the total only.
    private static let maximumOrigins = 1000

    var total: SessionSnapshot.Traffic { state.withLock { $0.total } }
    var origins: [String: SessionSnapshot.Traffic] { state.withLock { $0.origins } }

    func observe(_ event: LoadEvent, of load: LoadIdentity) {
        switch event {
        case .bodySent(let bytes): count(load) { $0.bytesSent += Int64(bytes.count) }
        case .received(let bytes): count(load) { $0.bytesReceived += Int64(bytes.count) }
        case .completed(let error):
            count(load) { traffic in
                switch error?.reason {
                case nil: traffic.finished += 1
                case .cancelled?: traffic.cancelled += 1
                case _?: traffic.failed += 1
                }
            }
        case .metrics(let metrics):
            // The violations of one response are distinct.
            let codes = metrics.transactions.flatMap { $0.violations.map(\.code.rawValue) }
            if !codes.isEmpty {
                count(load) { traffic in for code in codes { traffic.tolerated[code, default: 0] += 1 } }
            }
        default: break
        }
    }

    private func count(_ load: LoadIdentity, _ change: (inout SessionSnapshot.Traffic) -> Void) {
        let origin = Self.origin(load.request)
        state.withLock { state in
            change(&state.total)
            guard let origin, state.origins[origin] != nil || state.origins.count < Self.maximumOrigins else { return }
            change(&state.origins[origin, default: SessionSnapshot.Traffic()])
        }
    }

    /// The origin of the caller's request, as ``Route`` prints it. Bytes received after a redirect count for it too.
    private static func origin(_ request: Request) -> String? {
        guard case .success(let destination) = request.destination else { return nil }
        return "\(destination.target.origin)"
    }
}
