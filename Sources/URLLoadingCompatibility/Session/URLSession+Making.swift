// How tasks are made: a bridge, a task object over it, and a load behind it.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension URLSession {
    /// Asks the delegates of the load that wants to know. One for all: connections that it has let through serve all tasks.
    static let decisions: Decisions = {
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            try await TaskBridge.current?.decide(challenge) ?? .performDefaultHandling
        }
        return decisions
    }()

    final func makeDataTask(_ request: URLRequest, _ handler: TaskBridge.Handler?) -> URLSessionDataTask {
        makeTask(request, .data, handler, { URLSessionDataTask($0) }) { self.load(request, $0, self.pushed) }
    }

    /// A load whose body goes to its bridge.
    final func pushed(_ request: Request, _ bridge: TaskBridge) -> Result<BridgedLoad, LoadError> {
        .success(.data(core.dataTask(request, decisions: bridge.decisions, sink: bridge, holdsSession: true)))
    }

    /// - Parameter make: of a request that can be sent.
    final func load(
        _ request: URLRequest, _ bridge: TaskBridge, _ make: (Request, TaskBridge) -> Result<BridgedLoad, LoadError>
    ) -> Result<BridgedLoad, LoadError> {
        requested(request, for: bridge).flatMap { make($0, bridge) }
    }

    /// What of a request goes to the core.
    final func requested(_ request: URLRequest, for bridge: TaskBridge) -> Result<Request, LoadError> {
        guard marksRequests else { return Request.make(request, settings.requestCachePolicy) }
        return Request.make(request, settings.requestCachePolicy).map { made in
            var made = made
            bridge.mark(&made)
            return made
        }
    }

    /// - Parameters:
    ///   - isSuccessor: it goes on with the load of another task, though the session takes no new ones.
    ///   - load: makes its load; suspended.
    final func makeTask<Made: URLSessionTask>(
        _ request: URLRequest, _ kind: TaskBridge.Kind, _ handler: TaskBridge.Handler?, isSuccessor: Bool = false,
        _ make: (TaskBridge) -> Made,
        _ load: (TaskBridge) -> Result<BridgedLoad, LoadError>
    ) -> Made {
        let identifier = members.withLock { members in
            members.lastIdentifier += 1
            return members.lastIdentifier
        }
        let bridge = TaskBridge(self, identifier, request, handler, kind)
        let task = make(bridge)
        bridge.state.withLock { $0.active?.task = task }
        let isLate = members.withLock { members in
            let isLate = members.isInvalid && !isSuccessor
            if !isLate { members.tasks[identifier] = task }
            return isLate
        }
        bridge.begin(isLate ? .failure(.tooLate(request)) : load(bridge))
        announce(task)
        return task
    }

    /// The delegate of the task that is being made by a verb.
    @TaskLocal static var awaitedDelegate: (any URLSessionTaskDelegate)?

    /// The first call about a task: here and now, before the program can resume it.
    private final func announce(_ task: URLSessionTask) {
        guard let own = Self.awaitedDelegate else {
            (task.ownDelegate ?? delegates.task)?.urlSession(self, didCreateTask: task)
            return
        }
        task.delegate = own
        // Tasks that the delegate makes now are no verb's.
        Self.$awaitedDelegate.withValue(nil) { own.urlSession(self, didCreateTask: task) }
    }

    /// A task has another in its place.
    final func replace(_ identifier: Int, with task: URLSessionTask) {
        members.withLock { if $0.tasks[identifier] != nil { $0.tasks[identifier] = task } }
    }

    final var requestCachePolicy: URLRequest.CachePolicy { settings.requestCachePolicy }
}

extension LoadError {
    fileprivate static func tooLate(_ request: URLRequest) -> LoadError {
        LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: request.url)
    }
}
