// SPDX-License-Identifier: Apache-2.0

// The book of a child's completions. Each completion handler, final delegate call, value of a task and end of a
// sequence has a ticket, which is closed exactly once.

import Foundation
import Glibc
import Synchronization
import URLLoadingIO

final class Ledger: Sendable {
    private struct State: Sendable {
        var open: [UInt64: (label: String, since: ContinuousClock.Instant)] = [:]
        /// How long the tickets of each operation were open, in milliseconds: they hold the places of others.
        var held: [Substring: (times: Int, milliseconds: Double)] = [:]
        var last: UInt64 = 0
        var violations: [String] = []
        var errors: [String: Int] = [:]
        var completed: UInt64 = 0
        /// Changes with every ticket that is opened or closed: a watchdog compares it.
        var changes: UInt64 = 0
        /// The task that waits until fewer tickets are open than its limit.
        var waiter: (limit: Int, UnsafeContinuation<Void, Never>)?
    }
    private let state = Lock(State())
    // Unsafe: written under the lock only, and read by the driver's process.
    private nonisolated(unsafe) let counter: UnsafeMutablePointer<UInt64>

    /// - Parameter path: a file of at least eight bytes, into which the number of completed operations is written,
    ///   where a crash or an early exit leaves it.
    init(counter path: String?) {
        var mapped: UnsafeMutableRawPointer?
        if let path {
            let descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC)
            if descriptor >= 0 {
                let made = mmap(nil, 8, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
                if made != MAP_FAILED { mapped = made }
                close(descriptor)
            }
        }
        counter = mapped?.bindMemory(to: UInt64.self, capacity: 1) ?? .allocate(capacity: 1)
        counter.pointee = 0
    }

    /// Opens a ticket for something that must happen exactly once.
    func open(_ label: String) -> Ticket {
        state.withLock { state in
            state.last += 1
            state.changes += 1
            state.open[state.last] = (label, .now)
            return Ticket(state.last, label, self)
        }
    }

    /// Counts an operation that has done all its calls. Its tickets may still be open.
    func count(_ operations: UInt64 = 1) {
        state.withLock { state in
            state.completed += operations
            counter.pointee = state.completed
        }
    }

    /// Counts an error that the library may throw: a named one. `nil` counts a success.
    func note(_ error: (any Error)?) {
        let name = error.map(Self.name) ?? "success"
        state.withLock { $0.errors[name, default: 0] += 1 }
    }

    func violate(_ line: String) {
        complain("abuse: \(line)")
        state.withLock { if $0.violations.count < 100 { $0.violations.append(line) } }
    }

    fileprivate func closed(_ number: UInt64) {
        let waiter = state.withLock { state -> UnsafeContinuation<Void, Never>? in
            if let ticket = state.open.removeValue(forKey: number) {
                let name = ticket.label.prefix { $0 != " " && $0 != "," && $0 != ":" }
                let time = (ContinuousClock.now - ticket.since) / .milliseconds(1)
                state.held[name, default: (0, 0)].times += 1
                state.held[name, default: (0, 0)].milliseconds += time
            }
            state.changes += 1
            guard let (limit, waiter) = state.waiter, state.open.count < limit else { return nil }
            state.waiter = nil
            return waiter
        }
        waiter?.resume()
    }

    /// Waits until fewer tickets are open than `limit`. For one task at a time; the watchdog ends a wait that lasts.
    func room(_ limit: Int) async {
        await withUnsafeContinuation { continuation in
            let isFree = state.withLock { state in
                if state.open.count < limit { return true }
                state.waiter = (limit, continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    var changes: UInt64 { state.withLock { $0.changes } }
    var completed: UInt64 { state.withLock { $0.completed } }
    var violations: [String] { state.withLock { $0.violations } }
    var openLabels: [String] { state.withLock { $0.open.sorted { $0.key < $1.key }.map(\.value.label) } }
    /// The operations whose tickets were open longest in all, with their mean in milliseconds.
    var heldLine: String {
        state.withLock { state in
            let all = state.held.values.reduce(0) { $0 + $1.milliseconds }
            return state.held.sorted { $0.value.milliseconds > $1.value.milliseconds }.prefix(12).map {
                "\($0.key) \(Int(100 * $0.value.milliseconds / all))% (\(Int($0.value.milliseconds) / $0.value.times) ms)"
            }
        }.joined(separator: ", ")
    }
    var errorsLine: String {
        state.withLock { $0.errors.sorted { $0.value > $1.value }.prefix(12).map { "\($0.key) \($0.value)" } }
            .joined(separator: ", ")
    }
}

/// Something that must happen exactly once.
final class Ticket: Sendable {
    private let number: UInt64
    private let label: String
    private let ledger: Ledger
    private let times = Atomic<Int>(0)

    fileprivate init(_ number: UInt64, _ label: String, _ ledger: Ledger) {
        (self.number, self.label, self.ledger) = (number, label, ledger)
    }

    /// A closure that was released without a call can never be called any more.
    deinit {
        guard times.load(ordering: .relaxed) == 0 else { return }
        ledger.violate("never completed, and released: \(label)")
        ledger.closed(number)
    }

    func close(_ error: (any Error)? = nil) {
        let before = times.add(1, ordering: .acquiringAndReleasing).oldValue
        guard before == 0 else { return ledger.violate("completed \(before + 1) times: \(label)") }
        ledger.note(error)
        ledger.closed(number)
    }
}
