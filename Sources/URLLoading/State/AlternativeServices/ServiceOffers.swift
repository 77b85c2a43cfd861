// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// The offers of HTTP/3 in HTTPS records (RFC 9460), which name servers are asked for. In memory only: the records live
/// as long as they say, and are not of the origin itself.
final class ServiceOffers: Sendable {
    private let servers: NameServers?
    private let table = Lock(ServiceOfferTable())

    /// - Parameter servers: `nil` to ask none.
    init(_ servers: NameServers?) { self.servers = servers }

    /// Returns where the records of an origin offer HTTP/3, as far as that is known.
    func service(of origin: Origin) -> AlternativeService? {
        guard servers != nil else { return nil }
        return table.withLock { $0.service(of: origin, now: Poller.now()) }
    }

    /// Begins to ask for the records of an origin, unless it is known what they say. Returns at once.
    /// - Returns: whether a question is under way.
    func ask(_ origin: Origin) -> Bool {
        guard let servers, let host = origin.host.dnsName, let lookup = ServiceLookup(host: host, port: origin.port)
        else { return false }
        let (isFirst, isAsking) = table.withLock { ($0.begin(origin, now: Poller.now()), $0.isAsking(origin)) }
        guard isFirst else { return isAsking }
        _ = Task.here {
            let offer = await Self.offer(lookup, servers)
            let waiting = self.table.withLock { $0.end(origin, offer, now: Poller.now()) }
            for slot in waiting { slot.wake() }
        }
        return true
    }

    private static func offer(_ lookup: ServiceLookup, _ servers: NameServers) async -> ServiceOffer? {
        var lookup = lookup
        while true {
            let query = ServiceQuery(lookup.name, id: .random(in: .min ... .max))
            let answer: ServiceAnswer? = await servers.ask(query.bytes) { NameServers.Reply(query.reply($0)) }
            guard let answer else { return nil }
            if let offer = lookup.take(answer) { return offer }
        }
    }

    /// Waits for the end of a question under way, at most until `limit`.
    func answer(of origin: Origin, until limit: Int64, _ handle: LoadHandle) async throws(LoadError) {
        let slot = Poller.shared.borrowSlot()
        Poller.shared.schedule(slot, at: limit)
        try await handle.turn(in: slot) {
            table.withLock { $0.wait(slot, for: origin, isLate: Poller.now() >= limit) } ? nil : ()
        } abandon: {
            table.withLock { $0.forget(slot, for: origin) }
        }
    }
}

extension NameServers.Reply<ServiceAnswer> {
    fileprivate init(_ reply: ServiceQuery.Reply) {
        switch reply {
        case .unrelated: self = .unrelated
        case .truncated: self = .truncated
        case .refused: self = .refused
        case .answer(let answer): self = .answer(answer)
        }
    }
}

#endif
