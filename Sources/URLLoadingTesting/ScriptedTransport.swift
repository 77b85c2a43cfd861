// SPDX-License-Identifier: Apache-2.0

// A transport without a socket that follows a list of steps. It serves to end a load in each of its waits, the `block`
// steps: all but one of them are released at once, like a socket that becomes ready, and the chosen one holds until the
// load is ended by other means.

import Synchronization
package import URLLoadingIO

/// ```swift
/// let transport = ScriptedTransport(
///     [.takeUntil("\r\n\r\n"), .block, .give("HTTP/1.1 204 No Content\r\n\r\n")], holdingAt: 1)
/// configuration.dial = { _, _ in transport }
/// // …begin the load, then:
/// await transport.held()
/// task.cancel()
/// ```
package final class ScriptedTransport: Transport {
    package enum Step: Sendable {
        /// The other side must write exactly these bytes.
        case expect([UInt8])
        /// The other side must write this number of bytes.
        case take(Int)
        /// Consumes everything up to and including these bytes.
        case takeUntil([UInt8])
        /// The other side reads these bytes.
        case give([UInt8])
        /// No data is moved: the other side has to wait.
        case block
        /// No data is moved until `release`.
        case hold
        /// Every further read and write fails.
        case fail(IOFailure.Code)
        /// The peer sends no more data.
        case end

        package static func expect(_ text: String) -> Step { .expect(Array(text.utf8)) }
        package static func takeUntil(_ text: String) -> Step { .takeUntil(Array(text.utf8)) }
        package static func give(_ text: String) -> Step { .give(Array(text.utf8)) }
    }

    private let state: Lock<ScriptState>
    /// The number, from 1, of the block that holds.
    private let held: Int?
    private let whenHeld: @Sendable () -> Void
    package let slot: PollSlot

    /// - Parameters:
    ///   - held: the number, from 1, of the block that is not released; `nil` for none.
    ///   - whenHeld: called when that block is reached, before a task can wait there.
    package init(_ steps: [Step], holdingAt held: Int? = nil, whenHeld: @escaping @Sendable () -> Void = {}) {
        self.held = held
        self.whenHeld = whenHeld
        slot = Poller.shared.borrowSlot()
        var state = ScriptState(steps)
        state.arrive()
        let isHeld = state.blocks == held
        self.state = Lock(state)
        if isHeld { whenHeld() }
    }

    deinit { close() }

    /// Waits until a task waits at the block that holds.
    package func held() async {
        while !(isHolding && slot.hasWaiter) { try? await Task.sleep(for: .microseconds(100)) }
    }

    /// The number of blocks reached so far.
    package var blocks: Int { state.withLock { $0.blocks } }
    /// How often the other side asked that what it has received be acknowledged at once.
    package var acknowledgements: Int { state.withLock { $0.acknowledgements } }
    package var isClosed: Bool { state.withLock { $0.isClosed } }
    /// The number of remaining steps.
    package var stepsLeft: Int { state.withLock { $0.steps.count } }
    /// The data written in place of the expected bytes; `nil` if there was none.
    package var mismatch: String? { state.withLock { $0.mismatch } }

    private var isHolding: Bool { state.withLock { $0.isAtBlock && $0.blocks == held } }

    /// Whether a task waits at a `hold`.
    package var isHeld: Bool { state.withLock { $0.isAtHold && !$0.isClosed } && slot.hasWaiter }

    /// Releases the current `hold`, or the next one.
    package func release() {
        state.withLock { $0.release() }
        slot.wake()
    }

    /// The data that the other side wrote and the script consumed.
    package var written: [UInt8] { state.withLock { $0.written } }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
        try move(.read) { state throws(IOFailure) in state.read(into: buffer) }
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
        guard !bytes.isEmpty else { return .moved(0) }
        return try move(.write) { state throws(IOFailure) in try state.write(bytes) }
    }

    private func move(
        _ operation: IOFailure.Operation, _ step: (inout ScriptState) throws(IOFailure) -> Progress?
    ) throws(IOFailure) -> Progress {
        let (progress, arrived, holds) = try state.withLock { (state) throws(IOFailure) -> (Progress?, Bool, Bool) in
            guard !state.isClosed else { throw IOFailure(.closedByPeer, operation) }
            if case .fail(let code) = state.steps.first { throw IOFailure(code, operation) }
            let before = state.steps.count
            let progress = try step(&state)
            if progress == nil, state.isAtBlock, state.blocks != held { state.next() }
            return (progress, state.steps.count != before, state.isAtBlock && state.blocks == held)
        }
        // A new step notifies waiting tasks, as a socket's readiness does.
        if arrived { if holds { whenHeld() } else { slot.wake() } }
        return progress ?? .blocked(operation == .read ? .read : .write)
    }

    package func finishWriting() {}

    package func acknowledge() { state.withLock { $0.acknowledgements += 1 } }

    package func close() {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        if isFirst { Poller.shared.returnSlot(slot) }
    }

    package func hasPendingInput(askingKernel asks: Bool) -> Bool {
        state.withLock { state in
            switch state.steps.first {
            case .give, .end, .fail: true
            default: false
            }
        }
    }

    package var description: String { "script" }
}

/// The state of a script.
private struct ScriptState: Sendable {
    typealias Step = ScriptedTransport.Step
    private(set) var steps: ArraySlice<Step>
    private(set) var blocks = 0
    private(set) var mismatch: String?
    private(set) var written: [UInt8] = []
    private var releases = 0
    var acknowledgements = 0
    var isClosed = false
    /// Written bytes that may be the beginning of the awaited text.
    private var tail: [UInt8] = []

    init(_ steps: [Step]) { self.steps = steps[...] }

    var isAtBlock: Bool { if case .block = steps.first { true } else { false } }

    var isAtHold: Bool { if case .hold = steps.first { true } else { false } }

    mutating func arrive() {
        if isAtBlock { blocks += 1 }
        passHold()
    }

    private mutating func passHold() {
        guard isAtHold, releases > 0 else { return }
        releases -= 1
        next()
    }

    mutating func release() {
        releases += 1
        passHold()
    }

    mutating func next() {
        steps.removeFirst()
        arrive()
    }

    /// Replaces the first step by its rest.
    private mutating func shrink(to step: Step?) {
        guard let step else { return next() }
        steps[steps.startIndex] = step
    }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Progress? {
        switch steps.first {
        case .give(let bytes):
            let count = min(bytes.count, buffer.count)
            buffer.copyBytes(from: bytes[..<count])
            shrink(to: count < bytes.count ? .give(Array(bytes[count...])) : nil)
            return .moved(count)
        case .end: return .end
        default: return nil
        }
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress? {
        let progress = try take(bytes)
        if case .moved(let count) = progress { written += bytes.prefix(count) }
        return progress
    }

    private mutating func take(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress? {
        switch steps.first {
        case .expect(let expected):
            let count = min(bytes.count, expected.count)
            guard bytes.prefix(count).elementsEqual(expected[..<count]) else {
                mismatch = String(decoding: bytes, as: UTF8.self)
                throw IOFailure(.closedByPeer, .write)
            }
            shrink(to: count < expected.count ? .expect(Array(expected[count...])) : nil)
            return .moved(count)
        case .take(let wanted):
            let count = min(bytes.count, wanted)
            shrink(to: count < wanted ? .take(wanted - count) : nil)
            return .moved(count)
        case .takeUntil(let mark): return .moved(take(bytes, until: mark))
        default: return nil
        }
    }

    private mutating func take(_ bytes: UnsafeRawBufferPointer, until mark: [UInt8]) -> Int {
        for (index, byte) in bytes.enumerated() {
            tail.append(byte)
            if tail.count > mark.count { tail.removeFirst(tail.count - mark.count) }
            guard tail == mark else { continue }
            tail = []
            next()
            return index + 1
        }
        return bytes.count
    }
}
