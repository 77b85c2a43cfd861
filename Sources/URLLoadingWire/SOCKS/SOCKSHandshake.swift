// What must live here: the client's half of SOCKS 5 (RFC 1928, RFC 1929) and of SOCKS 4A, from the first
// byte to the proxy's word that the way is open. What this file does not know: where bytes come from, time.

/// Asking a SOCKS proxy for a connection, without input or output.
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
/// It asks for exactly the bytes of the next decision, so that none of what comes behind its last reply
/// is taken from whoever speaks then.
package struct SOCKSHandshake: Sendable, CustomStringConvertible {
    package enum Version: Sendable, Hashable { case socks4a, socks5 }

    package enum Step: Sendable, Hashable {
        /// So many more bytes must come.
        case needsBytes(Int)
        case established
        case refused(SOCKSRefusal)
    }

    private enum State: Sendable, Hashable {
        case method, verdict, reply5, address5
        case rest5(Int)
        case reply4, rest4
        case established
        case refused(SOCKSRefusal)
    }

    private var state: State
    private var output: [UInt8]
    private var input: [UInt8] = []
    private let request: [UInt8]
    private let login: [UInt8]?

    /// - Parameters:
    ///   - user: for SOCKS 5 sent only if the proxy asks for it; for SOCKS 4A always, and it has no password.
    /// Throws `invalidHost` or `invalidCredential` for what the protocol cannot carry.
    package init(
        _ version: Version, to address: SOCKSAddress, user: String? = nil, password: String? = nil
    ) throws(WireViolation) {
        switch version {
        case .socks5:
            login = try user.map { (user) throws(WireViolation) in try Self.login(user, password ?? "") }
            request = [5, 1, 0] + (try address.version5())
            // No authentication is offered first, as the cheaper.
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

    /// RFC 1929 2. An empty password is against its letter; servers know it.
    private static func login(_ user: String, _ password: String) throws(WireViolation) -> [UInt8] {
        guard let userCount = UInt8(exactly: user.utf8.count), userCount > 0,
            let passwordCount = UInt8(exactly: password.utf8.count)
        else { throw .local(.invalidCredential, "RFC 1929 2") }
        return [1, userCount] + user.utf8 + [passwordCount] + password.utf8
    }

    /// Writes what is due after what `buffer` holds: once for each stage.
    package mutating func send(into buffer: inout [UInt8]) {
        buffer += output
        output = []
    }

    /// What is to be done next.
    package func next() -> Step {
        switch state {
        case .method, .verdict, .reply5, .reply4: .needsBytes(2 - input.count)
        case .address5: .needsBytes(3 - input.count)
        case .rest4: .needsBytes(6 - input.count)
        case .rest5(let count): .needsBytes(count - input.count)
        case .established: .established
        case .refused(let why): .refused(why)
        }
    }

    /// Takes bytes of the proxy, no more than were asked for (else `illegalState`).
    package mutating func receive(_ bytes: some Collection<UInt8>) throws(WireViolation) {
        guard case .needsBytes(let count) = next(), bytes.count <= count else {
            throw .local(.illegalState, "RFC 1928")
        }
        input += bytes
        // The first byte tells what speaks there; the second may never come.
        try checkVersion()
        guard bytes.count == count else { return }
        let taken = input
        input = []
        try decide(taken)
    }

    /// The proxy has closed. There is no stage in which that is an answer.
    package func receiveEnd() throws(WireViolation) {
        if case .needsBytes = next() { throw .remote(.prematureEnd, at: input.count, "RFC 1928") }
    }

    private func checkVersion() throws(WireViolation) {
        guard let first = input.first else { return }
        switch state {
        case .method, .reply5: guard first == 5 else { throw .remote(.notSOCKS, at: 0, "RFC 1928 3") }
        // The version of the reply is 0; some servers write that of the request.
        case .reply4: guard first == 0 || first == 4 else { throw .remote(.notSOCKS, at: 0, "SOCKS 4") }
        // The version of the subnegotiation, and not of SOCKS.
        case .verdict: guard first == 1 else { throw .remote(.notSOCKS, at: 0, "RFC 1929 2") }
        case .address5, .rest5, .rest4, .established, .refused: break
        }
    }

    private mutating func decide(_ bytes: [UInt8]) throws(WireViolation) {
        switch state {
        case .method: try chose(bytes[1])
        case .verdict:
            guard bytes[1] == 0 else { return refuse(.credentials, bytes[1]) }
            ask()
        case .reply5:
            // Refusals are often cut short, for nothing behind their number matters.
            if bytes[1] == 0 { state = .address5 } else { refuse(.connection5, bytes[1]) }
        case .address5:
            switch bytes[1] {
            case 1: state = .rest5(3 + 2)
            case 3: state = .rest5(Int(bytes[2]) + 2)
            case 4: state = .rest5(15 + 2)
            default: throw .remote(.malformedSOCKSReply, at: 3, "RFC 1928 6")
            }
        case .reply4: if bytes[1] == 90 { state = .rest4 } else { refuse(.connection4, bytes[1]) }
        // Where it connected from is of no use to anybody here.
        case .rest5, .rest4: state = .established
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

    /// Nothing of what it sends: that holds credentials.
    package var description: String {
        switch next() {
        case .needsBytes(let count): "SOCKS: waiting for \(count) bytes"
        case .established: "SOCKS: established"
        case .refused(let why): why.description
        }
    }
}
