// SPDX-License-Identifier: Apache-2.0

// Events that the drivers of loads emit.

extension LoadContext {
    /// The emitter of the load; nil for a load without observers and without a task.
    var emitter: EventEmitter? { events as? EventEmitter }

    /// Sets the driver that is notified of a stop and of the events. It is kept alive until the load has ended.
    func setListener(_ driver: any StopListener & LoadListener) {
        handle.setListener(driver)
        emitter?.setListener(driver)
    }

    /// Emits an event. For a load without observers and without a task the event is not even created.
    func emit(_ event: @autoclosure () -> LoadEvent) { emitter?.emit(event()) }
}
