// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

/// How a test ends a load from outside.
enum Ending: CaseIterable, Sendable {
    case task, invalidation, idleTimeout, resourceTimeout

    /// Endings other than a silent peer.
    static let withoutIdle: [Ending] = [.task, .invalidation, .resourceTimeout]

    var reason: LoadError.Reason {
        switch self {
        case .task, .invalidation: .cancelled
        case .idleTimeout: .idleTimeout
        case .resourceTimeout: .resourceTimeout
        }
    }

    var isTimeout: Bool { self == .idleTimeout || self == .resourceTimeout }

    /// Timeouts are as short as possible: the loads they end would never end otherwise.
    func applied(to request: Request) -> Request {
        var request = request
        request.idleTimeout = self == .idleTimeout ? .milliseconds(20) : nil
        request.resourceTimeout = self == .resourceTimeout ? .milliseconds(20) : nil
        return request
    }

    /// Ends the load; timeouts need no action.
    func apply(_ load: RunningLoad, _ session: Session) {
        switch self {
        case .task: load.task.cancel()
        case .invalidation: session.invalidateAndCancel()
        case .idleTimeout, .resourceTimeout: break
        }
    }
}

/// How a test loads: collecting, with the body in a closure, and by a handle whose value, or whose body,
/// is waited for.
enum Verb: CaseIterable, Sendable {
    case data, load, value, body

    func run(_ session: Session, _ request: Request, _ decisions: Decisions = Decisions()) async throws -> Int {
        switch self {
        case .data: return try await session.data(for: request, decisions: decisions).0.count
        case .load:
            return try await session.load(request, decisions: decisions) { _, body in
                var count = 0
                for try await chunk in body { count += chunk.count }
                return count
            }
        case .value:
            return try await Self.use(session.dataTask(request, decisions: decisions)) { try await $0.value.count }
        case .body:
            return try await Self.use(session.dataTask(request, decisions: decisions)) { task in
                var count = 0
                for try await chunk in try await task.body { count += chunk.count }
                return count
            }
        }
    }

    /// A handle cancelled with its caller, and waited for until it has ended.
    private static func use(_ task: LoadTask<Data>, _ read: (LoadTask<Data>) async throws -> Int) async throws -> Int {
        let events = task.events
        task.resume()
        do {
            return try await withTaskCancellationHandler {
                try await read(task)
            } onCancel: {
                task.cancel()
            }
        } catch {
            await Task { for await _ in events {} }.value
            guard case .completed(let failure?) = task.snapshot.state else { throw error }
            throw failure
        }
    }
}

/// A load in a task of its own.
struct RunningLoad: Sendable {
    let task: Task<Result<Int, any Error>, Never>

    init(_ session: Session, _ request: Request, verb: Verb = .data, decisions: Decisions = Decisions()) {
        task = Task { await Result { try await verb.run(session, request, decisions) } }
    }

    /// Returns the error of a failed load; `nil` if it did not fail, or not with a `LoadError`.
    var reason: LoadError.Reason? {
        get async {
            guard case .failure(let error as LoadError) = await task.value else { return nil }
            return error.reason
        }
    }
}

/// A session's last assertion: nothing is left of it.
func expectEmpty(_ session: Session, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) async
{
    session.invalidateAndCancel()
    await session.invalidated()
    #expect(session.connectionsDescription == "empty", comment, sourceLocation: sourceLocation)
}

extension Configuration {
    /// No time-outs but those of the test, nothing of the system's.
    static var patient: Configuration {
        var configuration = Configuration.ephemeral
        configuration.timeouts.idle = nil
        configuration.timeouts.resource = nil
        return configuration
    }
}
