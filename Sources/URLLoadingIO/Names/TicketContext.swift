// SPDX-License-Identifier: Apache-2.0

// Kerberos authentication of a service. `TicketLibrary` contains the calls of GSSAPI.

import Synchronization

/// A Kerberos credential acquired with a user's password and held in memory only.
package final class TicketCredential: Sendable {
    private let library: TicketLibrary
    private let user: String
    private let password: String
    private let lock = Lock<Void>(())
    // Unsafe: accessed under the lock.
    nonisolated(unsafe) private var handle: OpaquePointer?

    init(_ library: TicketLibrary, _ user: String, _ password: String) {
        self.library = library
        self.user = user
        self.password = password
    }

    deinit { library.release(credential: &handle) }

    /// Returns the credential; contacts the KDC the first time. Blocks.
    func acquired() -> OpaquePointer? {
        lock.withLock { _ in
            if handle == nil { handle = library.acquire(user, password) }
            return handle
        }
    }
}

/// One GSSAPI security context, from its first token to the one that authenticates the service. One step at a time.
package final class TicketContext: Sendable {
    package enum Step: Sendable, Hashable {
        /// The token to send, empty for none. `isComplete` is true once both sides are authenticated.
        case continues(sending: [UInt8], isComplete: Bool)
        /// No usable ticket, a service that failed to authenticate, a stopped wait or a timeout.
        case failed
    }
    private let library: TicketLibrary
    private let service: String
    private let host: String
    private let credential: TicketCredential?
    /// The channel binding (RFC 5929); `nil` for none.
    package let binding: [UInt8]?
    private struct State {
        /// The name of the service.
        var name: OpaquePointer?
        var context: OpaquePointer?
    }
    private let state = Lock(State())

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

    deinit { state.withLock { library.release(&$0.context, &$0.name) } }

    /// Returns the first token, or the reply to a token of the service. If the wait is stopped, the blocking call ends
    /// on its own.
    /// - Parameters:
    ///   - input: the service's token; empty for the first step.
    ///   - deadline: a moment of the token's clock, because a KDC may never answer.
    package func step(_ input: [UInt8], _ token: StopToken, until deadline: Int64 = .max) async -> Step {
        await library.call(token, until: deadline) { [self] in
            guard token.stopReason == nil else { return .failed }
            return state.withLock { state in
                let own = credential?.acquired()
                guard credential == nil || own != nil else { return .failed }
                if state.name == nil { state.name = library.serviceName(service, host) }
                guard let name = state.name else { return .failed }
                return library.step(&state.context, name, own, binding, input)
            }
        }
    }
}
