// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension Task where Failure == Never {
    /// Starts a task that runs on the calling thread until it first suspends. It continues where the calling task runs:
    /// on the loop's executor if that task prefers it, otherwise in the pool. Unstructured tasks do not inherit that.
    /// - Parameters:
    ///   - onLoop: true to continue on the loop wherever the calling task runs.
    ///   - priority: nil for the priority of the calling task.
    @discardableResult
    static func here(
        onLoop: Bool = false, priority: TaskPriority? = nil,
        _ operation: sending @escaping @isolated(any) () async -> Success
    ) -> Task<Success, Never> {
        Task.immediate(
            priority: priority, executorPreference: onLoop ? Poller.shared : LoopPreference.current,
            operation: operation)
    }

    /// Starts a task as `here` does, for work of a session that outlives the calling task: it does not keep the
    /// task-local values of the program alive.
    @discardableResult
    static func apart(
        priority: TaskPriority, _ operation: sending @escaping @isolated(any) () async -> Success
    ) -> Task<Success, Never> {
        Task.immediateDetached(priority: priority, executorPreference: LoopPreference.current, operation: operation)
    }

    /// Starts a task on the event loop: for library code that must run even while the program blocks all threads of
    /// Swift's pool.
    @discardableResult
    package static func onLoop(
        _ operation: sending @escaping @isolated(any) () async -> Success
    ) -> Task<Success, Never> {
        Task(executorPreference: Poller.shared, operation: operation)
    }
}

enum LoopPreference {
    /// The event loop if the calling task prefers it; otherwise nil, which stands for the pool.
    static var current: (any TaskExecutor)? {
        withUnsafeCurrentTask { $0?.unownedTaskExecutor == Poller.shared.asUnownedTaskExecutor() } ? Poller.shared : nil
    }
}
