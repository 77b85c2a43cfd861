// SPDX-License-Identifier: Apache-2.0

// When a connection moves to another local address (RFC 9000 §9), and how: decided as a value.
//
//     early ──confirmed──▶ settled ──another address──▶ asking ──answer, or none──▶ settled
//                                  ──the server forbids it──▶ bound

#if HTTP3

struct HTTP3Migration: Sendable {
    private(set) var phase = Phase.early
    /// The path that is sent on.
    private(set) var path: UInt32 = 0
    private var lastNumber: UInt32 = 0
    /// The changes of the networks that were looked at.
    private var changeCount: Int
    private var nextLook = Int64.min

    enum Phase: Sendable, Equatable {
        /// The handshake is not confirmed: the server may not be asked yet.
        case early
        case settled
        /// The server is asked on this path.
        case asking(UInt32)
        /// The server wants its clients to stay.
        case bound
    }

    /// What speaks for another path.
    struct Signs: Sendable {
        /// The system refuses to send from the present address.
        var isStranded = false
        /// The server does not answer, although it must.
        var isSilent = false
        /// How often the networks have changed.
        var changeCount = 0
    }

    enum Look: Sendable, Equatable {
        /// The present path may work: it is left once the server has answered on another one.
        case beside
        /// The present path does not work.
        case instead
    }

    init(changeCount: Int) { self.changeCount = changeCount }

    /// The path on which the server is asked.
    var asked: UInt32? { if case .asking(let path) = phase { path } else { nil } }

    /// Returns whether the system is to be asked for another local address now, and what becomes of the present one.
    mutating func look(_ signs: Signs, now: Int64) -> Look? {
        guard phase == .settled else { return nil }
        let isLost = signs.isStranded || signs.isSilent
        guard signs.changeCount != changeCount || (isLost && now >= nextLook) else { return nil }
        changeCount = signs.changeCount
        nextLook = now + Self.pause
        return isLost ? .instead : .beside
    }
    /// Nanoseconds between two looks for the same reason.
    private static let pause: Int64 = 200_000_000

    /// Returns the number of a path that was not used yet.
    mutating func nextNumber() -> UInt32 {
        lastNumber = lastNumber % Self.mostPaths + 1
        return lastNumber
    }
    private static let mostPaths: UInt32 = 0xFF_FFFF

    mutating func confirmed() { if phase == .early { phase = .settled } }

    mutating func began(_ number: UInt32, _ look: Look) {
        phase = .asking(number)
        if look == .instead { path = number }
    }

    mutating func forbidden() { phase = .bound }

    mutating func answered(on number: UInt32) {
        path = number
        if phase == .asking(number) { phase = .settled }
    }

    /// Returns whether the connection is on the path that has failed.
    mutating func failed(_ number: UInt32) -> Bool {
        if phase == .asking(number) { phase = .settled }
        return path == number
    }
}

#endif
