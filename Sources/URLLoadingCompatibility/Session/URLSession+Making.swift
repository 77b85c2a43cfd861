// SPDX-License-Identifier: Apache-2.0

// The creation of tasks: a bridge, a task object on top of it, and a load behind it.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension URLSession {
    /// Decisions that ask the delegates of the requesting load. Shared by all tasks, so that connections they have
    /// accepted may serve all tasks.
    static let decisions: Decisions = {
        var decisions = Decisions()
        decisions.challenge = Decision.onLoop { challenge in
            try await TaskBridge.current?.decide(challenge) ?? .performDefaultHandling
        }
        return decisions
    }()

    final func makeDataTask(_ request: URLRequest, _ handler: TaskBridge.Handler?) -> URLSessionDataTask {
        makeTask(.init(request: request, kind: .data, handler: handler), { URLSessionDataTask($0) }) {
            self.load(request, $0) { self.pushed($0, $1) }
        }
    }

    /// Creates a load that pushes its body to the bridge.
    /// - Parameter old: a load of the same task that has not begun.
    final func pushed(
        _ request: Request, _ bridge: TaskBridge, inPlaceOf old: LoadTask<Data>? = nil
    ) -> Result<BridgedLoad, LoadError> {
        .success(
            .data(
                core.dataTask(
                    request, decisions: bridge.decisions, sink: bridge, holdsSession: true, inPlaceOf: old)))
    }

    /// - Parameter make: creates the load from a valid request.
    final func load(
        _ request: URLRequest, _ bridge: TaskBridge, _ make: (Request, TaskBridge) -> Result<BridgedLoad, LoadError>
    ) -> Result<BridgedLoad, LoadError> {
        requested(request, for: bridge).flatMap { make($0, bridge) }
    }

    /// Converts a classic request to the core's request.
    final func requested(_ request: URLRequest, for bridge: TaskBridge) -> Result<Request, LoadError> {
        guard marksRequests else { return Request.make(request, settings.requestCachePolicy) }
        return Request.make(request, settings.requestCachePolicy).map { made in
            var made = made
            bridge.mark(&made)
            return made
        }
    }

    /// - Parameters:
    ///   - make: creates the object of the task.
    ///   - load: creates the task's load, suspended.
    final func makeTask<Made: URLSessionTask>(
        _ setup: TaskBridge.Setup, _ make: (TaskBridge) -> Made,
        _ load: (TaskBridge) -> Result<BridgedLoad, LoadError>
    ) -> Made {
        let identifier = members.withLock { members in
            if let wanted = setup.identifier, members.tasks[wanted] == nil { return wanted }
            members.lastIdentifier += 1
            return members.lastIdentifier
        }
        let bridge = TaskBridge(setup, identifier: identifier, self)
        let task = make(bridge)
        bridge.state.withLock { $0.setTask(task) }
        let isLate = members.withLock { members in
            let isLate = members.isInvalid && !setup.isSuccessor
            if !isLate { members.tasks[identifier] = task }
            return isLate
        }
        let misuse = values.isBackground ? misuse(in: task, hasHandler: setup.handler != nil) : nil
        if let misuse { Self.misuseHandler(misuse) }
        bridge.begin(
            isLate
                ? .failure(.tooLate(setup.request))
                : misuse.map { .failure(.notInBackground($0, setup.request)) } ?? load(bridge))
        if !setup.isSuccessor { announce(task) }
        return task
    }

    /// The delegate of the task that an async method is creating.
    @TaskLocal static var awaitedDelegate: (any URLSessionTaskDelegate)?

    /// Makes the first call about a task, synchronously, before the program can resume the task. For a task that
    /// continues the load of another one on the delegate queue: that load ends on the event loop, which the delegate
    /// must not block.
    final func announce(_ task: URLSessionTask) {
        guard let own = Self.awaitedDelegate else {
            (task.ownDelegate ?? delegates.task)?.urlSession(self, didCreateTask: task)
            return
        }
        task.delegate = own
        // Tasks that the delegate creates during this call do not belong to the async method.
        Self.$awaitedDelegate.withValue(nil) { own.urlSession(self, didCreateTask: task) }
    }

    /// The policy of requests that have none of their own.
    final var requestCachePolicy: URLRequest.CachePolicy { settings.requestCachePolicy }

    /// Replaces a task by another one.
    final func replace(_ identifier: Int, with task: URLSessionTask) {
        members.withLock { if $0.tasks[identifier] != nil { $0.tasks[identifier] = task } }
    }
}

extension LoadError {
    fileprivate static func tooLate(_ request: URLRequest) -> LoadError {
        LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: request.url)
    }
}
