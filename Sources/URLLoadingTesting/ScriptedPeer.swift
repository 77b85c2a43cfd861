// SPDX-License-Identifier: Apache-2.0

// Connections without sockets for users' tests: public scripts on top of `ScriptedTransport`.

import Glibc
import Synchronization
public import URLLoading
import URLLoadingIO
import URLLoadingWire

/// A peer without a socket that consumes and sends data on each connection by a list of steps. For behaviour that a
/// real server does not show on request: single bytes, silence in the middle of a line, garbage.
///
/// ```swift
/// let peer = ScriptedPeer([.takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Le"), .hold, .lose])
/// var configuration = Configuration.ephemeral
/// configuration.connect(to: peer)
/// async let loaded = Session(configuration).data(from: url)   // any http or https URL
/// try await peer.untilHeld()      // the load has read the half of a field, and waits
/// peer.release()                  // now it loses its connection
/// ```
/// Names are not resolved and TLS is not used: the script sees the plain data meant for the server. Steps do not pause
/// by themselves: the client's reads wait at a step that consumes data, its writes at one that sends data, and both at
/// ``Step/hold``.
///
/// Prefer an ``HTTPTestServer`` for everything that it supports: it frames messages, keeps connections alive and
/// counts.
public final class ScriptedPeer: Sendable {
    /// One step of a connection.
    public enum Step: Sendable {
        /// The client must write exactly these bytes; otherwise its connection fails, and ``ScriptedPeer/failures``
        /// reports what it wrote.
        case expect(String)
        /// Consumes this number of bytes from the client, more than 0.
        case take(Int)
        /// Consumes everything from the client up to and including this text.
        case takeUntil(String)
        /// Sends this text to the client, as UTF-8.
        case give(String)
        /// Sends these bytes to the client.
        case giveBytes([UInt8])
        /// Pauses both directions until ``ScriptedPeer/release(connection:)``.
        case hold
        /// Ends the sending direction; the last step.
        case end
        /// Makes every read and write fail as after a connection reset; the last step.
        case lose
    }

    struct State: ServerState {
        fileprivate var scripts: [[Step]]
        fileprivate var transports: [ScriptedTransport] = []
        var watchers: [PollSlot] = []
        var shown: String { "\(transports.count) connections made" }

        fileprivate init(_ scripts: [[Step]]) { self.scripts = scripts }
    }
    private let state: Lock<State>

    /// Creates a peer that accepts one connection for each script.
    /// - Parameter scripts: one for each connection, in the order of connecting. Further connections are refused
    ///   (``/URLLoading/LoadError/Reason/connectionRefused``).
    public init(_ scripts: [Step]...) { state = Lock(State(scripts)) }

    /// The number of connections made.
    public var connections: Int { state.withLock { $0.transports.count } }

    /// Returns the data that the client wrote and the script consumed.
    /// - Parameter connection: its number, from 1.
    public func written(onConnection connection: Int = 1) -> [UInt8] { transport(connection)?.written ?? [] }

    /// Releases the ``Step/hold`` at which a connection pauses, or its next one.
    /// - Parameter connection: its number, from 1. Has no effect before the connection is made.
    public func release(connection: Int = 1) { transport(connection)?.release() }

    /// Waits until this many connections were made.
    /// - Parameters:
    ///   - count: more than 0.
    ///   - limit: the longest time to wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilConnected(
        _ count: Int = 1, timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await wait(WaitLimit(limit, "\(count) connections of the peer", file, line)) {
            $0.transports.count >= count ? () : nil
        }
    }

    /// Waits until a load pauses at a ``Step/hold``.
    /// - Parameters:
    ///   - connection: the number of its connection, from 1.
    ///   - limit: the longest time to wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilHeld(
        connection: Int = 1, timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await WaitLimit(limit, "a hold of connection \(connection)", file, line).poll {
            transport(connection)?.isHeld == true
        } seen: {
            "\(connections) connections made; \(failures.shown())"
        }
    }

    /// Deviations from the scripts: one line for each connection that was not made, on which other data was written, or
    /// with steps left. Empty if everything went as scripted.
    public var failures: [String] {
        let (left, transports) = state.withLock { ($0.scripts.count, $0.transports) }
        let ofTransports = transports.enumerated().compactMap { index, transport -> String? in
            if let wrong = transport.mismatch {
                return "connection \(index + 1): \(wrong.debugDescription) where else was expected"
            }
            let steps = transport.stepsLeft
            return steps > 0 ? "connection \(index + 1): \(steps) steps left" : nil
        }
        return ofTransports + (left > 0 ? ["\(left) connections not made"] : [])
    }

    private func transport(_ number: Int) -> ScriptedTransport? {
        state.withLock { $0.transports.indices.contains(number - 1) ? $0.transports[number - 1] : nil }
    }

    fileprivate func dial(_ origin: Origin, _ token: StopToken) throws(IOFailure) -> any Transport {
        let made = change { state -> ScriptedTransport? in
            guard !state.scripts.isEmpty else { return nil }
            let transport = ScriptedTransport(state.scripts.removeFirst().compactMap(ScriptedTransport.Step.init))
            state.transports.append(transport)
            return transport
        }
        guard let made else { throw IOFailure(.system(ECONNREFUSED), .connect) }
        return made
    }
}

extension ScriptedPeer: WatchedServer {
    func withState<R: Sendable>(_ use: (inout State) -> R) -> R { state.withLock { use(&$0) } }
}

extension Configuration {
    /// Makes sessions created with this configuration connect to `peer`, for any host, ignoring the environment's
    /// proxies. If proxies are set afterwards, the peer takes the place of the first one.
    public mutating func connect(to peer: ScriptedPeer) {
        networks.proxyPolicy = .none
        dial = { (origin, token) throws(IOFailure) in try peer.dial(origin, token) }
    }
}

extension ScriptedTransport.Step {
    /// Translates a step; `nil` for a step that would have no effect.
    fileprivate init?(_ step: ScriptedPeer.Step) {
        switch step {
        case .expect(""), .takeUntil(""), .give(""), .giveBytes([]), .take(...0): return nil
        default: break
        }
        self =
            switch step {
            case .expect(let text): .expect(text)
            case .take(let count): .take(count)
            case .takeUntil(let text): .takeUntil(text)
            case .give(let text): .give(text)
            case .giveBytes(let bytes): .give(bytes)
            case .hold: .hold
            case .end: .end
            case .lose: .fail(.system(ECONNRESET))
            }
    }
}
