// SPDX-License-Identifier: Apache-2.0

// In this folder: the handshakes of SOCKS 4A and 5, as state machines

// The client side of SOCKS 5 (RFC 1928, RFC 1929) and SOCKS 4A, from the first byte to the proxy's final reply. I/O and
// time are handled elsewhere.

/// The request to a SOCKS proxy for a connection, without I/O.
///
/// ```swift
/// var handshake = try SOCKSHandshake(.socks5, to: SOCKSAddress(host, port: 443))
/// while true {
///     handshake.send(into: &output)              // …write `output`…
///     switch handshake.next() {
///     case .needsBytes(let count): try handshake.receive(bytes)   // at most `count` of them
///     case .established: return
///     case .refused(let why): …
///     }
/// }
/// ```
/// The handshake reads exactly the bytes that the next decision needs, so that it consumes none of the data after the
/// proxy's last reply.
package struct SOCKSHandshake: Sendable, CustomStringConvertible {
    package enum Version: Sendable, Hashable { case socks4a, socks5 }

    package enum Step: Sendable, Hashable {
        /// The given number of bytes must be received next.
        case needsBytes(Int)
        case established
        case refused(SOCKSRefusal)
    }

    private enum State: Sendable, Hashable {
        case method, verdict, reply5, address5
        case remainder5(Int)
        case reply4, remainder4
        case established
        case refused(SOCKSRefusal)
    }

    private var state: State
    private var output: [UInt8]
    private var input: [UInt8] = []
    private let request: [UInt8]
    private let login: [UInt8]?

    /// Creates a handshake. Throws `invalidHost` or `invalidCredential` for values that the protocol cannot carry.
    /// - Parameters:
    ///   - user: with SOCKS 5 sent only if the proxy requests it; with SOCKS 4A always sent, without a password.
    package init(
        _ version: Version, to address: SOCKSAddress, user: String? = nil, password: String? = nil
    ) throws(WireViolation) {
        switch version {
        case .socks5:
            login = try user.map { (user) throws(WireViolation) in try Self.login(user, password ?? "") }
            request = [5, 1, 0] + (try address.version5())
            // "No authentication" is listed first, because it is cheaper.
            output = login == nil ? [5, 1, 0] : [5, 2, 0, 2]
            state = .method
        case .socks4a:
            let user = Array((user ?? "").utf8)
            guard !user.contains(0), user.count <= 255 else { throw .local(.invalidCredential, "SOCKS 4A") }
            let (fixed, name) = try address.version4()
            request = []
            login = nil
            output = [4, 1] + fixed + user + [0] + (name.map { $0 + [0] } ?? [])
            state = .reply4
        }
    }

    /// Returns the message of RFC 1929 §2. An empty password violates its wording, but servers accept it.
    private static func login(_ user: String, _ password: String) throws(WireViolation) -> [UInt8] {
        guard let userCount = UInt8(exactly: user.utf8.count), userCount > 0,
            let passwordCount = UInt8(exactly: password.utf8.count)
        else { throw .local(.invalidCredential, "RFC 1929 2") }
        return [1, userCount] + user.utf8 + [passwordCount] + password.utf8
    }

    /// Appends pending output to `buffer`. Call it once in each stage.
    package mutating func send(into buffer: inout [UInt8]) {
        buffer += output
        output = []
    }

    /// Returns the next step.
    package func next() -> Step {
        switch state {
        case .method, .verdict, .reply5, .reply4: .needsBytes(2 - input.count)
        case .address5: .needsBytes(3 - input.count)
        case .remainder4: .needsBytes(6 - input.count)
        case .remainder5(let count): .needsBytes(count - input.count)
        case .established: .established
        case .refused(let why): .refused(why)
        }
    }

    /// Consumes bytes from the proxy, at most the number requested (otherwise throws `illegalState`).
    package mutating func receive(_ bytes: some Collection<UInt8>) throws(WireViolation) {
        guard case .needsBytes(let count) = next(), bytes.count <= count else {
            throw .local(.illegalState, "RFC 1928")
        }
        input += bytes
        // The first byte identifies the protocol; a second one may never come.
        try checkVersion()
        guard bytes.count == count else { return }
        let taken = input
        input = []
        try decide(taken)
    }

    /// Reports that the proxy has closed the connection, which is an error in every stage.
    package func receiveEnd() throws(WireViolation) {
        if case .needsBytes = next() { throw .remote(.prematureEnd, at: input.count, "RFC 1928") }
    }

    private func checkVersion() throws(WireViolation) {
        guard let first = input.first else { return }
        switch state {
        case .method, .reply5: guard first == 5 else { throw .remote(.notSOCKS, at: 0, "RFC 1928 3") }
        // The version of the reply is 0; some servers send that of the request.
        case .reply4: guard first == 0 || first == 4 else { throw .remote(.notSOCKS, at: 0, "SOCKS 4") }
        // The version of the subnegotiation, not of SOCKS.
        case .verdict: guard first == 1 else { throw .remote(.notSOCKS, at: 0, "RFC 1929 2") }
        case .address5, .remainder5, .remainder4, .established, .refused: break
        }
    }

    private mutating func decide(_ bytes: [UInt8]) throws(WireViolation) {
        switch state {
        case .method: try chose(bytes[1])
        case .verdict:
            guard bytes[1] == 0 else { return refuse(.credentials, bytes[1]) }
            ask()
        case .reply5:
            // Servers often truncate negative replies, because nothing after the code matters.
            if bytes[1] == 0 { state = .address5 } else { refuse(.connection5, bytes[1]) }
        case .address5:
            switch bytes[1] {
            case 1: state = .remainder5(3 + 2)
            case 3: state = .remainder5(Int(bytes[2]) + 2)
            case 4: state = .remainder5(15 + 2)
            default: throw .remote(.malformedSOCKSReply, at: 3, "RFC 1928 6")
            }
        case .reply4: if bytes[1] == 90 { state = .remainder4 } else { refuse(.connection4, bytes[1]) }
        // The proxy's own address is not used.
        case .remainder5, .remainder4: state = .established
        case .established, .refused: break
        }
    }

    private mutating func chose(_ method: UInt8) throws(WireViolation) {
        switch method {
        case 0: ask()
        case 2 where login != nil:
            output = login ?? []
            state = .verdict
        case 0xFF: refuse(.method, method)
        default: throw .remote(.malformedSOCKSReply, at: 1, "RFC 1928 3")
        }
    }

    private mutating func ask() {
        output = request
        state = .reply5
    }

    private mutating func refuse(_ stage: SOCKSRefusal.Stage, _ code: UInt8) {
        state = .refused(SOCKSRefusal(stage: stage, code: code))
    }

    /// The state without any sent data, which contains credentials.
    package var description: String {
        switch next() {
        case .needsBytes(let count): "SOCKS: waiting for \(count) bytes"
        case .established: "SOCKS: established"
        case .refused(let why): why.description
        }
    }
}
