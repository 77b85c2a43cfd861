// SPDX-License-Identifier: Apache-2.0

// In this folder: name resolution, the race of addresses, and libraries that are loaded when they are needed

// Resolves names to addresses. The system's resolver blocks, so it runs on the blocking threads. Equal lookups share
// one call; every caller gets its own result, and a cancelled caller leaves at once while the call continues for the
// others.

import Synchronization
import URLLoadingCSystem

package protocol Resolver: Sendable {
    /// Returns addresses in the system's order of preference (RFC 6724), never empty, with port 0.
    func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress]
    #if HTTP3
    /// The servers that know more of names than their addresses; `nil` for a resolver without any.
    var nameServers: NameServers? { get }
    #endif
}

#if HTTP3
extension Resolver {
    package var nameServers: NameServers? { nil }
}
#endif

package final class SystemResolver: Resolver {
    package static let shared = SystemResolver()

    private struct Lookups: Sendable {
        /// Those that later callers join.
        var joined: [String: Lookup] = [:]
        /// The names with a call under way that all its callers have left. One for each name, because the calls have
        /// few threads.
        var left: Set<String> = []
    }
    private let lookups = Lock(Lookups())
    private let threads: BlockingThreads
    private let ask: @Sendable (String) -> Result<[SocketAddress], IOFailure>

    /// Creates a resolver. `ask` is the blocking call; tests pass another one.
    package init(
        threads: BlockingThreads = .shared,
        ask: @escaping @Sendable (String) -> Result<[SocketAddress], IOFailure> = SystemResolver.getaddrinfo
    ) {
        self.threads = threads
        self.ask = ask
    }

    #if HTTP3
    package var nameServers: NameServers? { .system }
    #endif

    package func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
        let (lookup, isNew) = lookups.withLock { lookups in
            if let going = lookups.joined[name] { return (going, false) }
            let new = Lookup()
            lookups.joined[name] = new
            return (new, true)
        }
        if isNew {
            threads.run { [self] in
                let answer = ask(name)
                // Remove the lookup first: nothing is cached here, so a caller that arrives now starts a new one.
                lookups.withLock { lookups in
                    if lookups.joined[name] === lookup { lookups.joined[name] = nil } else { lookups.left.remove(name) }
                }
                lookup.finish(answer)
            }
        }
        defer { if !lookup.isWanted { leave(lookup, name) } }
        return try await lookup.answer(token)
    }

    /// Lets later callers ask anew: a call that began while the network was away may take half a minute, in which the
    /// network comes back.
    private func leave(_ lookup: Lookup, _ name: String) {
        lookups.withLock { lookups in
            guard lookups.joined[name] === lookup, lookups.left.insert(name).inserted else { return }
            lookups.joined[name] = nil
        }
    }

    private final class Lookup: Sendable {
        private struct State {
            var answer: Result<[SocketAddress], IOFailure>?
            var waiting: [PollSlot] = []
        }
        private let state = Lock(State())

        /// Whether a caller waits for the answer.
        var isWanted: Bool { state.withLock { !$0.waiting.isEmpty } }

        func finish(_ answer: Result<[SocketAddress], IOFailure>) {
            let waiting = state.withLock { state in
                state.answer = answer
                return state.waiting
            }
            for slot in waiting { slot.wake() }
        }

        func answer(_ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
            let slot = Poller.shared.borrowSlot()
            token.attach(slot)
            state.withLock { $0.waiting.append(slot) }
            defer {
                token.detach(slot)
                // Detach the slot before it is lent again, so that `finish` does not wake its next borrower.
                state.withLock { $0.waiting.removeAll { $0 === slot } }
                Poller.shared.returnSlot(slot)
            }
            while true {
                try token.check(.resolve)
                if let answer = state.withLock({ $0.answer }) { return try answer.get() }
                await Poller.shared.parkIdle(slot, token)
            }
        }
    }

    /// Calls getaddrinfo(3) for stream sockets. The caller has already handled numeric addresses.
    @Sendable package static func getaddrinfo(_ name: String) -> Result<[SocketAddress], IOFailure> {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        // Skip families without a configured address: trying them would only cost time.
        hints.ai_flags = AI_ADDRCONFIG
        var found: UnsafeMutablePointer<addrinfo>?
        var result = URLLoadingCSystem.getaddrinfo(name, nil, &hints, &found)
        if result == EAI_ADDRFAMILY_ || result == EAI_NONAME, let family = familyLeftOut {
            // AI_ADDRCONFIG hides names of loopback, for instance, of a family that only loopback has. What it has
            // asked for already is not asked for again.
            (hints.ai_flags, hints.ai_family) = (0, family)
            result = URLLoadingCSystem.getaddrinfo(name, nil, &hints, &found)
        }
        defer { if let found { freeaddrinfo(found) } }
        guard result == 0 else { return .failure(failure(result, name)) }
        var addresses: [SocketAddress] = []
        var next = found
        while let info = next?.pointee {
            if let address = SocketAddress(info), !addresses.contains(address) { addresses.append(address) }
            next = info.ai_next
        }
        return addresses.isEmpty ? .failure(IOFailure(.hostNotFound(name), .resolve)) : .success(addresses)
    }

    /// The family that AI_ADDRCONFIG leaves out now; `nil` if it leaves out none.
    private static var familyLeftOut: Int32? {
        var (hasIPv4, hasIPv6) = (false, false)
        guard csys_address_families(&hasIPv4, &hasIPv6) == 0 else { return nil }
        return leftOut(hasIPv4: hasIPv4, hasIPv6: hasIPv6)
    }

    /// Returns the family that AI_ADDRCONFIG leaves out: of two families the one without an address other than that of
    /// loopback, and none where both are without one.
    static func leftOut(hasIPv4: Bool, hasIPv6: Bool) -> Int32? {
        hasIPv4 == hasIPv6 ? nil : hasIPv4 ? AF_INET6 : AF_INET
    }

    /// glibc's values: Swift imports those of the extension only in part.
    private static let EAI_NODATA_: Int32 = -5
    private static let EAI_ADDRFAMILY_: Int32 = -9

    private static func failure(_ code: Int32, _ name: String) -> IOFailure {
        // Without a free descriptor glibc can read no file and query no server, and often reports a missing name
        // instead.
        let error = csys_error()
        if let refusal = FreeDescriptor.refusal { return IOFailure(.system(refusal), .resolve) }
        return switch code {
        case EAI_NONAME, EAI_NODATA_, EAI_ADDRFAMILY_: IOFailure(.hostNotFound(name), .resolve)
        case EAI_SYSTEM: IOFailure(.system(error), .resolve)
        default: IOFailure(.lookupFailed(String(cString: gai_strerror(code))), .resolve)
        }
    }
}

extension SocketAddress {
    init?(_ info: addrinfo) {
        guard let address = info.ai_addr else { return nil }
        var storage = sockaddr_storage()
        let length = min(Int(info.ai_addrlen), MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length))
        }
        self.init(storage, length: socklen_t(length))
    }
}
