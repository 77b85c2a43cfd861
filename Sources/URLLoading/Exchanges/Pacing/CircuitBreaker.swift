// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A handler that makes no requests to a server for a while after several failures in a row, so that loads fail at once
/// instead of waiting for a server that is down, and the server is not overrun by all loads while it recovers.
///
/// ```swift
/// configuration.handlers.append(CircuitBreaker(failures: 5, pause: .seconds(30)))
/// ```
/// Each origin has a circuit of its own. After `failures` loads in a row that failed, loads end with
/// ``LoadError/Reason/circuitOpen`` for the time of `pause`. Then one load is made: if it succeeds, all others are made
/// again; if it fails, another pause begins. A load has failed if it ended with one of `reasons` before its response,
/// after all attempts of its ``RetryPolicy``, or with one of `statuses`. A cancelled load says nothing.
public final class CircuitBreaker: ProtocolHandler, CustomStringConvertible {
    private struct State: Sendable {
        var circuits: [Origin: Circuit] = [:]
    }
    private let limit: Int
    private let pause: Int64
    private let reasons: Set<LoadError.Reason>
    private let statuses: Set<Status>
    private let state = Lock(State())
    /// Beyond that number, circuits that hold no load back are forgotten.
    private static let mostCircuits = 1_024

    /// The statuses of a server that fails, or of a proxy without one: 500, 502, 503 and 504.
    public static let serverFailures: Set<Status> = [
        .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]

    /// Creates a handler for the sessions whose ``Configuration/handlers`` it is among; several share its circuits.
    /// - Parameters:
    ///   - failures: the failures in a row after which a pause begins, at least 1.
    ///   - pause: the time without requests, more than zero.
    ///   - reasons: the errors that are failures.
    ///   - statuses: the statuses that are failures.
    public init(
        failures: Int = 5, pause: Duration = .seconds(30),
        reasons: Set<LoadError.Reason> = RetryPolicy.transientReasons, statuses: Set<Status> = serverFailures
    ) {
        (limit, self.reasons, self.statuses) = (failures, reasons, statuses)
        self.pause = LoadHandle.nanoseconds(pause)
    }

    public func canHandle(_ request: Request) -> Bool { request.isWeb }

    public func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        guard case .success(let destination) = request.destination else { return try await client.next.load(request) }
        let origin = destination.target.origin
        let clock = client.load.clock
        guard state.withLock({ admits(origin, now: clock.now(), &$0) }) else {
            throw LoadError(
                .circuitOpen, phase: .preparing, party: .local,
                detail: "\(origin) failed \(limit) times in a row: no request is made for a while")
        }
        var outcome = Circuit.Outcome.none
        defer { conclude(origin, outcome, now: clock.now()) }
        do throws(LoadError) {
            let answer = try await client.next.load(request)
            outcome = answer.response.http.map { statuses.contains($0.status) } == true ? .failure : .success
            return answer
        } catch {
            if reasons.contains(error.reason) { outcome = .failure }
            throw error
        }
    }

    private func admits(_ origin: Origin, now: Int64, _ state: inout State) -> Bool {
        if state.circuits[origin] == nil, state.circuits.count >= Self.mostCircuits {
            state.circuits = state.circuits.filter { $0.value.forbids(now: now) }
        }
        return state.circuits[origin, default: Circuit()].admits(now: now)
    }

    private func conclude(_ origin: Origin, _ outcome: Circuit.Outcome, now: Int64) {
        state.withLock { state in
            guard var circuit = state.circuits[origin] else { return }
            circuit.conclude(outcome, limit: limit, pause: pause, now: now)
            // A circuit without failures is that of a server that was never asked.
            state.circuits[origin] = circuit == Circuit() ? nil : circuit
        }
    }

    /// The circuits that are not closed, on one line: `open: https://a.example`.
    public var description: String {
        let names = open.sorted()
        return names.isEmpty ? "all closed" : "open: \(names.joined(separator: ", "))"
    }

    /// The origins to which no requests are made, or a single one that decides.
    var open: [String] {
        state.withLock { state in
            state.circuits.compactMap { origin, circuit in
                if case .closed = circuit.state { nil } else { "\(origin)" }
            }
        }
    }
}
