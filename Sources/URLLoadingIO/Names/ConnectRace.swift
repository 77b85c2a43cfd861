// SPDX-License-Identifier: Apache-2.0

// Happy Eyeballs (RFC 8305): several addresses, one connection. `ConnectRace` is a value that decides; `connect` acts
// on it. One task watches all attempts on one slot, so no attempt outlives the call.

import Glibc
import URLLoadingCSystem

/// Decides which connection attempt starts when. The caller passes the time.
package struct ConnectRace: Sendable {
    package enum Step: Sendable, Equatable {
        case start(Int)
        case wait(until: Int64)
        /// All attempts have failed, or there were no addresses.
        case giveUp
    }

    private let count: Int
    private let delay: Int64
    private var next = 0
    private var going = 0
    private var nextStart: Int64 = .min

    /// RFC 8305 §5 recommends 250 ms between attempts.
    package init(count: Int, delay: Int64 = 250_000_000) {
        self.count = count
        self.delay = delay
    }

    package mutating func step(now: Int64) -> Step {
        if next < count, going == 0 || now >= nextStart {
            defer {
                next += 1
                going += 1
                nextStart = now + delay
            }
            return .start(next)
        }
        if going == 0 { return .giveUp }
        return .wait(until: next < count ? nextStart : .max)
    }

    /// Records a failed attempt: the next one starts without delay (§5).
    package mutating func failed() {
        going -= 1
        nextStart = .min
    }

    /// Orders addresses so that families alternate, beginning with the family of the first address (RFC 8305 §4).
    package static func interleave(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        var own = addresses.filter { $0.family == first.family }[...]
        var other = addresses.filter { $0.family != first.family }[...]
        var order: [SocketAddress] = []
        while !own.isEmpty || !other.isEmpty {
            if let address = own.popFirst() { order.append(address) }
            if let address = other.popFirst() { order.append(address) }
        }
        return order
    }

    /// Returns the failure to report of two, in their order. Running out of descriptors is something the caller can act
    /// upon. That a machine without IPv6 cannot reach an IPv6 address says less than the failure at another address.
    /// Otherwise it is the first failure, which concerns the preferred address.
    static func failure(_ first: IOFailure?, _ next: IOFailure) -> IOFailure {
        guard let first, !next.isOutOfDescriptors else { return next }
        return first.isLackOfRoute && !next.isLackOfRoute ? next : first
    }

    /// Connects to the address that answers first and closes the other attempts. If all fail, throws the most telling
    /// failure; see `failure`.
    package static func connect(
        _ addresses: [SocketAddress], with setup: SocketSetup = SocketSetup(), marked mark: SocketMark? = nil,
        _ token: StopToken
    ) async throws(IOFailure) -> SocketTransport {
        let order = interleave(addresses)
        if order.count == 1 {
            return try await SocketTransport.connect(to: order[0], with: setup, marked: mark, token)
        }
        return try await race(order, with: setup, marked: mark, token)
    }

    @inline(never)
    private static func race(
        _ order: [SocketAddress], with setup: SocketSetup, marked mark: SocketMark?, _ token: StopToken
    ) async throws(IOFailure) -> SocketTransport {
        let watcher = Poller.shared.borrowSlot()
        token.attach(watcher)
        var attempts: [SocketTransport] = []
        defer {
            for attempt in attempts { attempt.slot.unrelay() }
            token.detach(watcher)
            Poller.shared.returnSlot(watcher)
        }
        var race = ConnectRace(count: order.count)
        var failure: IOFailure?
        while true {
            try token.check(.connect)
            var index = 0
            while index < attempts.count {
                do throws(IOFailure) {
                    if try attempts[index].hasConnected() {
                        let winner = attempts.remove(at: index)
                        winner.slot.unrelay()
                        for loser in attempts { loser.close() }
                        // Their slots may belong to other sockets from now on, whose relays are not this race's.
                        attempts = []
                        return winner
                    }
                    index += 1
                } catch {
                    failure = Self.failure(failure, error)
                    attempts.remove(at: index).close()
                    race.failed()
                }
            }
            switch race.step(now: Poller.now()) {
            case .start(let next):
                do throws(IOFailure) {
                    let attempt = try SocketTransport.begin(order[next], with: setup, marked: mark, relay: watcher)
                    attempts.append(attempt)
                } catch {
                    failure = Self.failure(failure, error)
                    race.failed()
                }
            case .wait(let moment):
                Poller.shared.schedule(watcher, at: moment)
                await Poller.shared.parkIdle(watcher, token)
            case .giveUp:
                throw failure ?? IOFailure(.invalidAddress("no address"), .connect)
            }
        }
    }
}

extension IOFailure {
    /// True if this machine has no address or no route of the address's family.
    fileprivate var isLackOfRoute: Bool {
        switch code {
        case .system(EADDRNOTAVAIL), .system(EAFNOSUPPORT), .system(ENETUNREACH): true
        default: false
        }
    }
}
