// Connections without sockets, for users' tests: scripts in front of `ScriptedTransport`.

import Glibc
import Synchronization
public import URLLoading
import URLLoadingIO
import URLLoadingWire

/// A peer without a socket: what it takes and sends on each connection is a list of steps. For what no
/// real server does on request: a byte at a time, silence in the middle of a line, garbage.
///
/// ```swift
/// let peer = ScriptedPeer([.takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Le"), .hold, .lose])
/// var configuration = Configuration.ephemeral
/// configuration.connect(to: peer)
/// async let loaded = Session(configuration).data(from: url)   // any http or https URL
/// try await peer.untilHeld()      // the load has read the half of a field, and waits
/// peer.release()                  // now it loses its connection
/// ```
/// Names are not looked up and TLS is not spoken: the script sees what is meant for the server, in the
/// clear. No step waits by itself: reads of the client wait at a step that takes, writes at one that
/// gives, both at ``Step/hold``.
///
/// A ``TestOrigin`` is the better server for everything it can do: it frames, keeps alive, counts.
public final class ScriptedPeer: Sendable {
    /// What happens next on a connection.
    public enum Step: Sendable {
        /// The client must write exactly these bytes; otherwise its connection is lost and
        /// ``ScriptedPeer/complaints`` says what it wrote.
        case expect(String)
        /// So many bytes are taken from the client, whatever they are; more than 0.
        case take(Int)
        /// Everything up to and with these bytes is taken from the client.
        case takeUntil(String)
        /// The client may read this text, as UTF-8.
        case give(String)
        /// The client may read these bytes.
        case giveBytes([UInt8])
        /// Nothing moves until ``ScriptedPeer/release(connection:)``.
        case hold
        /// The client reads the end of what is sent; the last step.
        case end
        /// Every read and write fails as of a connection that was reset; the last step.
        case lose
    }

    private struct State: Sendable {
        var scripts: [[Step]]
        var transports: [ScriptedTransport] = []
    }
    private let state: Lock<State>

    /// A peer that takes one connection, or as many as there are scripts.
    /// - Parameter scripts: one for each connection, in the order in which they are made. Further ones are
    ///   refused (``LoadError/Reason/connectionRefused``).
    public init(_ scripts: [Step]...) { state = Lock(State(scripts: scripts)) }

    /// Connections made.
    public var connections: Int { state.withLock { $0.transports.count } }

    /// What the client wrote, as far as the script took it.
    /// - Parameter connection: its number, from 1.
    public func written(onConnection connection: Int = 1) -> [UInt8] { transport(connection)?.written ?? [] }

    /// Lets the client go on from the ``Step/hold`` it is at, or from the next one it comes to.
    /// - Parameter connection: its number, from 1. One not made yet has nothing to release.
    public func release(connection: Int = 1) { transport(connection)?.release() }

    /// Returns when a load waits at a ``Step/hold``.
    /// - Parameters:
    ///   - connection: the number of its connection, from 1.
    ///   - limit: of the wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilHeld(
        connection: Int = 1, within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await WaitLimit(limit, "a hold of connection \(connection)", file, line).poll {
            transport(connection)?.isHeld == true
        } seen: {
            "\(connections) connections made; \(complaints.shown())"
        }
    }

    /// What did not go as it was written: a line per connection that was not made, wrote something else,
    /// or has steps left. Empty if all went as it should.
    public var complaints: [String] {
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
        let made = state.withLock { state -> ScriptedTransport? in
            guard !state.scripts.isEmpty else { return nil }
            let transport = ScriptedTransport(state.scripts.removeFirst().compactMap(ScriptedTransport.Step.init))
            state.transports.append(transport)
            return transport
        }
        guard let made else { throw IOFailure(.system(ECONNREFUSED), .connect) }
        return made
    }
}

extension Configuration {
    /// From now on the sessions made with this value connect to `peer`, whatever the host, and whatever proxies the
    /// environment names; those set afterwards are spoken to as if the peer were the first of them.
    public mutating func connect(to peer: ScriptedPeer) {
        proxies = .none
        dial = { (origin, token) throws(IOFailure) in try peer.dial(origin, token) }
    }
}

extension ScriptedTransport.Step {
    /// `nil` for a step that would move nothing.
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
