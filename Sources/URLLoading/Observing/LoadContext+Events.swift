// The events that the drivers of loads tell.

extension LoadContext {
    /// Nil for a load without observers and without a task.
    var emitter: EventEmitter? { events as? EventEmitter }

    /// Sets the driver that is told of a stop and of the events. It is kept alive until the load has ended.
    func tell(_ driver: any StopListener & LoadListener) {
        handle.tell(driver)
        emitter?.tell(driver)
    }

    /// Tells an event; the event of a load without observers and without a task is never made.
    func emit(_ event: @autoclosure () -> LoadEvent) { emitter?.emit(event()) }
}
