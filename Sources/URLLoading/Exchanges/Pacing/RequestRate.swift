// SPDX-License-Identifier: Apache-2.0

// In this folder: handlers that hold requests back, or refuse them, for the sake of a server

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A handler that limits the requests a second to each server, and pauses for as long as a server asks.
///
/// ```swift
/// configuration.handlers.append(RequestRate(perSecond: 5, burst: 10))
/// ```
/// Each origin has a pace of its own. A request waits for its turn in order of arrival; so do the attempts of a
/// ``RetryPolicy`` and the requests of redirects. A response with status 429 or 503 and Retry-After (RFC 9110 §10.2.3),
/// and one whose RateLimit fields say that nothing remains (IETF draft *RateLimit header fields for HTTP*), pause all
/// requests to its origin, at most for a day; afterwards they are sent at the even pace. So does a response after which
/// a ``RetryPolicy`` repeats the request. A load that is cancelled gives its turn back.
/// Requests of other schemes than http and https are not limited.
public final class RequestRate: ProtocolHandler, CustomStringConvertible {
    private struct Host: Sendable {
        var pace: RequestPace
        var waiting = 0
    }
    private struct State: Sendable {
        var hosts: [Origin: Host] = [:]
        /// The number of hosts at which those at rest are forgotten.
        var most = RequestRate.leastHosts
    }
    private let perSecond: Double
    private let burst: Int
    private let maximumWait: Int64
    private let state = Lock(State())
    private static let leastHosts = 1_024
    private static let longestPause: Int64 = 86_400

    /// Creates a handler for the sessions whose ``Configuration/handlers`` it is among; several share its paces.
    /// - Parameters:
    ///   - perSecond: the requests a second to one origin, more than zero; 0.1 is one in ten seconds.
    ///   - burst: how many requests may be sent at once after a pause, at least 1.
    ///   - maximumWait: the longest wait of one request, at least zero. One that would wait longer fails at once with
    ///     ``LoadError/Reason/rateLimited``.
    public init(perSecond: Double, burst: Int = 1, maximumWait: Duration = .seconds(60)) {
        (self.perSecond, self.burst) = (perSecond, burst)
        self.maximumWait = maximumWait > .zero ? LoadHandle.nanoseconds(maximumWait) : 0
    }

    public func canHandle(_ request: Request) -> Bool { request.isWeb }

    public func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        guard case .success(let destination) = request.destination else { return try await client.next.load(request) }
        let origin = destination.target.origin
        let load = client.load
        let answer = try await client.next.load(request) { [self] request in
            try await wait(origin, load)
            return request.headers
        } beforeRepetition: { [self] head in
            pause(origin, after: head, load)
        }
        if let head = answer.response.http { pause(origin, after: head, load) }
        return answer
    }

    /// Holds all requests to the origin back for as long as a response asks.
    private func pause(_ origin: Origin, after head: HTTPHead, _ load: LoadContext) {
        guard let seconds = ServerPause.seconds(head) else { return }
        let until = load.clock.now() + min(seconds, Self.longestPause) * 1_000_000_000
        state.withLock { $0.hosts[origin]?.pace.pause(until: until) }
    }

    /// The paces that hold requests back, on one line: `5.0 a second, https://a.example: 3 waiting`.
    public var description: String {
        let waiting = waiting.sorted { $0.key < $1.key }.map { ", \($0.key): \($0.value) waiting" }.joined()
        return "\(perSecond) a second\(waiting)"
    }

    /// The number of requests that wait, by origin; origins without any are left out.
    var waiting: [String: Int] {
        state.withLock { state in
            Dictionary(
                state.hosts.filter { $0.value.waiting > 0 }.map { ("\($0.key)", $0.value.waiting) },
                uniquingKeysWith: +)
        }
    }

    // MARK: Turns

    private func wait(_ origin: Origin, _ load: LoadContext) async throws(LoadError) {
        while true {
            let now = load.clock.now()
            guard let moment = state.withLock({ reserve(origin, now, &$0) }) else {
                throw LoadError(
                    .rateLimited, phase: .preparing, party: .local, detail: "\(origin): the wait would be too long")
            }
            guard moment > now else { return }
            state.withLock { $0.hosts[origin]?.waiting += 1 }
            defer { state.withLock { $0.hosts[origin]?.waiting -= 1 } }
            do throws(IOFailure) { try await load.clock.sleep(until: moment, load.handle) } catch {
                state.withLock { $0.hosts[origin]?.pace.giveBack() }
                throw LoadError(error, .preparing)
            }
            // A pause that began meanwhile holds all, and turns are given anew after it.
            if state.withLock({ ($0.hosts[origin]?.pace.pausedUntil ?? 0) <= load.clock.now() }) { return }
        }
    }

    /// Reserves a turn; `nil` if it would come too late.
    private func reserve(_ origin: Origin, _ now: Int64, _ state: inout State) -> Int64? {
        if state.hosts[origin] == nil {
            if state.hosts.count >= state.most {
                state.hosts = state.hosts.filter { $0.value.waiting > 0 || !$0.value.pace.isAtRest(now: now) }
                state.most = max(Self.leastHosts, state.hosts.count * 2)
            }
            state.hosts[origin] = Host(pace: RequestPace(perSecond: perSecond, burst: burst))
        }
        guard let next = state.hosts[origin]?.pace.next(now: now), next - now <= maximumWait else { return nil }
        return state.hosts[origin]?.pace.reserve(now: now)
    }
}

extension Request {
    /// Whether the scheme is http or https.
    var isWeb: Bool { ["http", "https"].contains(url.scheme?.lowercased()) }
}
