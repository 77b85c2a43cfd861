// SPDX-License-Identifier: Apache-2.0

// Asks one proxy to open a tunnel and reads its answer: CONNECT (RFC 9110 §9.3.6), or SOCKS. It never reads beyond the
// answer, because the bytes after it belong to the next protocol.

import URLLoadingIO
import URLLoadingWire

/// Passes the HTTP messages that open a tunnel to the wire tap, with the identifier of the future connection. SOCKS
/// messages are not shown: they are binary, and the password in them could not be redacted.
struct ProxyTap: Sendable {
    let report: @Sendable (WireTapEvent) -> Void
    let connection: Int
}

/// Opens a tunnel through one proxy of a chain.
struct ProxyOpening {
    private let tap: ProxyTap?
    private let transport: any Transport
    private let proxy: Proxy
    private let control: LoadHandle
    private let configuration: Configuration

    init(
        _ transport: any Transport, _ proxy: Proxy, _ control: LoadHandle, _ configuration: Configuration,
        _ tap: ProxyTap?
    ) {
        self.tap = tap
        self.transport = transport
        self.proxy = proxy
        self.control = control
        self.configuration = configuration
    }

    /// A refused CONNECT, of which only the head has been read.
    struct Refusal {
        let error: LoadError
        fileprivate var codec: HTTP1Codec
        fileprivate var input: [UInt8]
        /// The proxy refused the login that was to authenticate the connection.
        fileprivate var isOfProof = false

        /// Whether the proxy demands credentials and keeps the connection open for another CONNECT.
        var mayBeAskedAgain: Bool {
            !isOfProof && error.reason == .proxyAuthenticationRequired && codec.reuse != .never
        }
    }

    /// - Parameters:
    ///   - address: sent to a SOCKS proxy instead of the host.
    ///   - isAgain: the wire tap knows the connection already.
    /// - Returns: the refusal of an HTTP proxy; `nil` if the tunnel is open.
    func open(
        to host: Origin.Host, _ port: UInt16, at address: SOCKSAddress.Host? = nil, isAgain: Bool = false
    ) async throws(LoadError) -> Refusal? {
        control.attach(transport.slot)
        defer { control.detach(transport.slot) }
        switch proxy.kind {
        case .http, .https: return try await connect(to: host, port, isAgain: isAgain)
        case .socks4a: try await negotiate(.socks4a, host, port, address)
        case .socks5: try await negotiate(.socks5, host, port, address)
        }
        return nil
    }

    // MARK: HTTP

    private func connect(to host: Origin.Host, _ port: UInt16, isAgain: Bool) async throws(LoadError) -> Refusal? {
        let authority = Array("\(host.authority):\(port)".utf8)
        if !isAgain, let tap { tap.report(.connected(transport.description, connection: tap.connection)) }
        if proxy.authorization == nil, let login = proxy.login,
            let authenticationHandshake = AuthenticationHandshake(
                login, timeout: configuration.authentication.kerberosTimeout)
        {
            return try await prove(authenticationHandshake, authority)
        }
        let digest = proxy.authorization == nil ? proxy.login?.digestAuthorization() : nil
        let authorization =
            digest.map { $0.value(method: "CONNECT", target: authority, body: []) }
            ?? proxy.authorizationField("CONNECT", authority)
        let (head, refusal) = try await ask(authority, authorization)
        // A successful answer to CONNECT has no body that a proof could cover.
        if refusal == nil, let digest {
            let proof = DigestProof(digest, authority, isProxy: true)
            if try !proof.process(head.headers) { try proof.end() }
        }
        return refusal
    }

    /// Authenticates the connection with several messages. A connection whose final message was refused is not kept,
    /// because it is bound to the refused login.
    private func prove(_ authenticationHandshake: AuthenticationHandshake, _ authority: [UInt8]) async throws(LoadError)
        -> Refusal?
    {
        let binding = proxy.kind == .https ? (transport as? TLSTransport)?.endPointBinding : nil
        var message = try await authenticationHandshake.first(binding, control)
        while true {
            let (head, refused) = try await ask(authority, message?.value)
            guard var refusal = refused else {
                _ = try await authenticationHandshake.process(head, control)
                return nil
            }
            guard let sent = message, !sent.isLast, head.status == authenticationHandshake.refusal,
                let token = authenticationHandshake.token(in: head.headers)
            else {
                refusal.isOfProof = message != nil
                return refusal
            }
            guard await finish(&refusal) else {
                try check()
                throw .handshakeFailed("the proxy closed the connection during the authentication handshake")
            }
            message = try await authenticationHandshake.next(token, binding, control)
        }
    }

    /// Sends one CONNECT, and returns the head of the answer, with the refusal if it is not successful.
    private func ask(_ authority: [UInt8], _ authorization: String?) async throws(LoadError) -> (HTTPHead, Refusal?) {
        var codec = HTTP1Codec(role: .client, limits: HTTP1Limits(configuration.limits))
        var headers = Headers()
        if let authorization { headers.append(.proxyAuthorization, authorization) }
        if let userAgent = configuration.userAgent { headers.append(.userAgent, userAgent) }
        var request: [UInt8] = []
        do throws(WireViolation) {
            try codec.sendRequest(
                method: .connect, target: authority, host: authority, headers: headers, framing: .none, into: &request)
        } catch { throw LoadError(error, .connecting) }
        try await send(request)
        if let tap { tap.report(.sent(request, connection: tap.connection)) }
        var input: [UInt8] = []
        let head = HTTPHead(try await answer(&codec, &input))
        guard head.status.kind != .successful else { return (head, nil) }
        let reason: LoadError.Reason =
            head.status == .proxyAuthenticationRequired ? .proxyAuthenticationRequired : .proxyRefused
        let error = LoadError(reason, phase: .connecting, party: .remote, detail: "it answered \(head.status)").at(
            proxy, head: head)
        return (head, Refusal(error: error, codec: codec, input: input))
    }

    /// Reading a longer body of a refusal costs more than a new connection.
    private static let maximumDrained = 64 * 1024

    /// Reads the rest of a refusal. Returns whether the connection can carry another CONNECT.
    func finish(_ refusal: inout Refusal) async -> Bool {
        control.attach(transport.slot)
        defer { control.detach(transport.slot) }
        guard refusal.codec.remainingLength ?? 0 <= Int64(Self.maximumDrained) else { return false }
        var count = 0
        do throws(LoadError) {
            while count <= Self.maximumDrained, refusal.codec.reuse != .never {
                switch try next(&refusal.codec, &refusal.input) {
                case .end?: return refusal.codec.reuse == .yes && refusal.input.isEmpty
                case nil:
                    let more = try await receive(16 * 1024)
                    guard !more.isEmpty else { return false }
                    count += more.count
                    refusal.input += more
                    if let tap { tap.report(.received(more, connection: tap.connection)) }
                default: continue
                }
            }
        } catch {}
        return false
    }

    /// Takes the next event from the received bytes.
    private func next(_ codec: inout HTTP1Codec, _ input: inout [UInt8]) throws(LoadError) -> HTTP1Event? {
        var consumed = 0
        do throws(WireViolation) {
            let event = try input.withUnsafeBytes { bytes in
                Result { () throws(WireViolation) in try codec.next(bytes, consumed: &consumed) }
            }.get()
            input.removeFirst(consumed)
            return event
        } catch { throw LoadError(error, .connecting) }
    }

    /// Reads the head of the final answer, and no byte beyond it: each read asks for the number of bytes that must at
    /// least be missing.
    private func answer(_ codec: inout HTTP1Codec, _ input: inout [UInt8]) async throws(LoadError) -> HTTP1ResponseHead
    {
        while true {
            switch try next(&codec, &input) {
            case .response(let head)?, .upgraded(let head)?: return head
            case .informational?: continue
            case .request?, .data?, .end?:
                throw LoadError(WireViolation(.remote, .unexpectedResponse, section: "RFC 9110 9.3.6"), .connecting)
            case nil: break
            }
            // At least "HTTP/1.1 200" and an empty line.
            let missing = input.isEmpty ? 16 : HeadEnd.missing(in: input)
            let more = try await receive(missing)
            guard !more.isEmpty else {
                throw LoadError(
                    .connectionLost, phase: .connecting, party: .remote, detail: "closed without an answer to CONNECT")
            }
            input += more
            if let tap { tap.report(.received(more, connection: tap.connection)) }
        }
    }

    // MARK: SOCKS

    private func negotiate(
        _ version: SOCKSHandshake.Version, _ host: Origin.Host, _ port: UInt16, _ address: SOCKSAddress.Host?
    ) async throws(LoadError) {
        var handshake: SOCKSHandshake
        do throws(WireViolation) {
            let place = if let address { SOCKSAddress(address, port: port) } else { try SOCKSAddress(host, port: port) }
            handshake = try SOCKSHandshake(version, to: place, user: proxy.user, password: proxy.password)
        } catch { throw LoadError(error, .connecting) }
        while true {
            var output: [UInt8] = []
            handshake.send(into: &output)
            if !output.isEmpty { try await send(output) }
            switch handshake.next() {
            case .established: return
            case .refused(let refusal):
                throw LoadError(
                    refusal.wantsCredentials ? .proxyAuthenticationRequired : .proxyRefused, phase: .connecting,
                    party: .remote,
                    detail: refusal.description
                ).at(proxy, reply: refusal.code)
            case .needsBytes(let count):
                let bytes = try await receive(count)
                do throws(WireViolation) {
                    if bytes.isEmpty { try handshake.receiveEnd() } else { try handshake.receive(bytes) }
                } catch { throw LoadError(error, .connecting) }
            }
        }
    }

    // MARK: Bytes

    private func send(_ bytes: [UInt8]) async throws(LoadError) {
        var sent = 0
        while sent < bytes.count {
            let progress = bytes.withUnsafeBytes { bytes in
                Result { () throws(IOFailure) in try transport.write(UnsafeRawBufferPointer(rebasing: bytes[sent...])) }
            }
            switch try moved(progress) {
            case .moved(let count): sent += count
            case .blocked(let interest): try await wait(interest)
            case .end: throw LoadError(.connectionLost, phase: .connecting, party: .remote)
            }
        }
    }

    /// Reads at most `most` bytes; returns none at the end.
    private func receive(_ most: Int) async throws(LoadError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: most)
        while true {
            let progress = buffer.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in try transport.read(into: room) }
            }
            switch try moved(progress) {
            case .moved(let count): return Array(buffer[..<count])
            case .blocked(let interest): try await wait(interest)
            case .end: return []
            }
        }
    }

    private func moved(_ progress: Result<Progress, IOFailure>) throws(LoadError) -> Progress {
        do throws(IOFailure) { return try progress.get() } catch { throw LoadError(error, .connecting) }
    }

    private func wait(_ interest: PollSlot.Interest) async throws(LoadError) {
        try check()
        await Poller.shared.park(transport.slot, interest, control)
        try check()
    }

    private func check() throws(LoadError) {
        do throws(IOFailure) { try control.check(.connect) } catch { throw LoadError(error, .connecting) }
    }
}

/// Computes how many bytes of a head must at least be missing, from the part of its terminator that is here.
enum HeadEnd {
    static func missing(in input: [UInt8]) -> Int {
        let tail = input.suffix(3)
        for (count, end) in [(3, "\r\n\r"), (2, "\r\n"), (1, "\r")] where tail.suffix(count).elementsEqual(end.utf8) {
            return 4 - count
        }
        return 4
    }
}

extension HTTP1Limits {
    init(_ limits: Configuration.Limits) {
        self.init()
        headSize = limits.headSize
        fieldCount = limits.fieldCount
        chunkExtensionSize = limits.chunkExtensionSize
        trailerSize = limits.trailerSize
        informationalCount = limits.informationalCount
    }
}
