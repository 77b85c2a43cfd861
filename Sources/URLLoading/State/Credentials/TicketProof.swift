// SPDX-License-Identifier: Apache-2.0

// One Kerberos proof. It is made when the connection is known, and bound to its channel (RFC 5929), so that an
// intermediary cannot relay it.

import URLLoadingIO

final class TicketProof {
    private let login: Login
    private let limit: Duration
    private var context: TicketContext?

    /// A first token that has not been sent.
    struct Begun: Sendable {
        let context: TicketContext
        let token: [UInt8]
        let isComplete: Bool
    }

    init(_ login: Login, timeout limit: Duration) {
        self.login = login
        self.limit = limit
    }

    /// A token was sent, and the response may complete the proof.
    var isOpen: Bool { context != nil }

    /// Makes the first token. A token serves one request: servers reject one they have seen.
    func begin(_ binding: [UInt8]?, _ load: LoadHandle) async -> Begun? {
        var begun = login.takeBegunTicket()
        if begun == nil || begun?.context.binding != binding {
            begun = await Self.begin(login.space.host, login.ticketCredential, binding, timeout: limit, load)
        }
        context = begun?.context
        return begun
    }

    /// - Returns: `nil` without a ticket, without a service name, without the library, or after the timeout.
    static func begin(
        _ host: String, _ credential: TicketCredential?, _ binding: [UInt8]?, timeout limit: Duration,
        _ load: LoadHandle
    ) async -> Begun? {
        guard let context = TicketLibrary.shared?.context(for: "HTTP", on: host, as: credential, bound: binding),
            case .continues(let token, let isComplete) = await context.step([], load, until: deadline(limit, load)),
            !token.isEmpty
        else { return nil }
        return Begun(context: context, token: token, isComplete: isComplete)
    }

    func step(_ token: [UInt8], _ load: LoadHandle) async -> TicketContext.Step {
        await context?.step(token, load, until: Self.deadline(limit, load)) ?? .failed
    }

    private static func deadline(_ limit: Duration, _ load: LoadHandle) -> Int64 {
        load.clock.now().addingReportingOverflow(LoadHandle.nanoseconds(limit)).partialValue
    }
}
