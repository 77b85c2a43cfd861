// Proofs by ticket, and what they are made with. See `TicketLibrary` for what does it.

import Synchronization

/// What a user's password is good for, in memory alone.
package final class TicketCredential: @unchecked Sendable {
    // Unchecked: what changes is touched under the lock.
    private let library: TicketLibrary
    private let user: String
    private let password: String
    private let lock = Lock<Void>(())
    private var handle: OpaquePointer?

    init(_ library: TicketLibrary, _ user: String, _ password: String) {
        self.library = library
        self.user = user
        self.password = password
    }

    deinit { library.release(credential: &handle) }

    /// Asks the KDC the first time. Blocks.
    func acquired() -> OpaquePointer? {
        lock.withLock { _ in
            if handle == nil { handle = library.acquire(user, password) }
            return handle
        }
    }
}

/// One proof, from its first token to the one that proves the service to us. One step at a time.
package final class TicketContext: @unchecked Sendable {
    // Unchecked: what changes is touched under the lock.
    package enum Step: Sendable, Hashable {
        /// What is to be said; empty for nothing. Complete: each has proved himself to the other.
        case goesOn(saying: [UInt8], isComplete: Bool)
        /// No ticket that is good for it, a service that is another, or the wait was stopped or took too long.
        case failed
    }
    private let library: TicketLibrary
    private let service: String
    private let host: String
    private let credential: TicketCredential?
    /// What it is bound to.
    package let binding: [UInt8]?
    private let lock = Lock<Void>(())
    private var name: OpaquePointer?
    private var context: OpaquePointer?

    init(
        _ library: TicketLibrary, _ service: String, _ host: String, _ credential: TicketCredential?,
        _ binding: [UInt8]?
    ) {
        self.library = library
        self.service = service
        self.host = host
        self.credential = credential
        self.binding = binding
    }

    deinit { library.release(&context, &name) }

    /// The first token, or the answer to one of the service's. A wait that is stopped leaves the call to itself.
    /// - Parameters:
    ///   - input: empty for the first.
    ///   - deadline: of the token's clock: a KDC may never answer.
    package func step(_ input: [UInt8], _ token: StopToken, until deadline: Int64 = .max) async -> Step {
        await library.call(token, until: deadline) { [self] in
            guard token.stopReason == nil else { return .failed }
            return lock.withLock { _ in
                let own = credential?.acquired()
                guard credential == nil || own != nil else { return .failed }
                if name == nil { name = library.serviceName(service, host) }
                guard let name else { return .failed }
                return library.step(&context, name, own, binding, input)
            }
        }
    }
}
