// SPDX-License-Identifier: Apache-2.0

// The interface through which the classic API consumes a load.

/// The classic task that consumes a load. A load calls its sink from one task at a time.
package protocol LoadSink: DecisionCaller {
    /// Receives the events in order; must not wait.
    func emit(_ event: LoadEvent)
    /// Receives a chunk of the body; the load reads on when this returns.
    func receive(_ chunk: Chunk) async
    /// The load begins to wait for more of the body: the sink passes on what has come so far.
    func pause()
    /// The load was stopped: a wait in `receive` must end.
    func stopped()
}
