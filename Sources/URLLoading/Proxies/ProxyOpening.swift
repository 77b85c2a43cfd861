// What one proxy is asked, and its answer: CONNECT (RFC 9110 §9.3.6), or SOCKS. It reads what it needs to know the answer
// and not a byte more.

import URLLoadingIO
import URLLoadingWire

/// Shows what is said in HTTP to open a tunnel, under the number its connection will have. SOCKS is not shown: its bytes
/// are no text, and the password among them could not be hidden.
struct ProxyTap: Sendable {
    let tell: @Sendable (WireTapEvent) -> Void
    let connection: Int
}

/// One hop's yes or no.
struct ProxyOpening {
    private let tap: ProxyTap?
    private let transport: any Transport
    private let proxy: Proxy
    private let control: LoadControl
    private let configuration: Configuration

    init(
        _ transport: any Transport, _ proxy: Proxy, _ control: LoadControl, _ configuration: Configuration, _ tap: ProxyTap?
    ) {
        self.tap = tap
        self.transport = transport
        self.proxy = proxy
        self.control = control
        self.configuration = configuration
    }

    func open(to host: Origin.Host, _ port: UInt16) async throws(LoadError) {
        control.attach(transport.slot)
        defer { control.detach(transport.slot) }
        switch proxy.kind {
        case .http, .https: try await connect(to: host, port)
        case .socks4a: try await negotiate(.socks4a, host, port)
        case .socks5: try await negotiate(.socks5, host, port)
        }
    }

    // MARK: HTTP

    private func connect(to host: Origin.Host, _ port: UInt16) async throws(LoadError) {
        var codec = HTTP1Codec(role: .client, limits: HTTP1Limits(configuration.limits))
        let authority = Array("\(host.authority):\(port)".utf8)
        var headers = Headers()
        if let authorization = proxy.authorizationField("CONNECT", authority) { headers.append(.proxyAuthorization, authorization) }
        if let userAgent = configuration.userAgent { headers.append(.userAgent, userAgent) }
        var request: [UInt8] = []
        do throws(WireViolation) {
            try codec.sendRequest(method: .connect, target: authority, host: authority, headers: headers, framing: .none, into: &request)
        } catch { throw LoadError(error, .connecting) }
        if let tap { tap.tell(.connected(transport.description, connection: tap.connection)) }
        try await send(request)
        if let tap { tap.tell(.sent(request, connection: tap.connection)) }
        let head = HTTPHead(try await answer(&codec))
        guard head.status.kind != .successful else { return }
        let reason: LoadError.Reason = head.status == .proxyAuthenticationRequired ? .proxyAuthenticationRequired : .proxyRefused
        throw LoadError(reason, phase: .connecting, party: .peer, detail: "it answered \(head.status)").at(proxy, head: head)
    }

    /// The head of its final answer, and not a byte more: how many must at least be missing is told by how
    /// much of its last four bytes is here.
    private func answer(_ codec: inout HTTP1Codec) async throws(LoadError) -> HTTP1ResponseHead {
        var input: [UInt8] = []
        while true {
            var consumed = 0
            do throws(WireViolation) {
                let event = try input.withUnsafeBytes { bytes in
                    Result { () throws(WireViolation) in try codec.next(bytes, consumed: &consumed) }
                }.get()
                input.removeFirst(consumed)
                switch event {
                case .response(let head)?, .upgraded(let head)?: return head
                case .informational?: continue
                case .request?, .data?, .end?: throw WireViolation(.remote, .unexpectedResponse, section: "RFC 9110 9.3.6")
                case nil: break
                }
            } catch { throw LoadError(error, .connecting) }
            // "HTTP/1.1 200" and an empty line at least.
            let missing = input.isEmpty ? 16 : HeadEnd.missing(in: input)
            let more = try await receive(missing)
            guard !more.isEmpty else {
                throw LoadError(.connectionLost, phase: .connecting, party: .peer, detail: "closed without an answer to CONNECT")
            }
            input += more
            if let tap { tap.tell(.received(more, connection: tap.connection)) }
        }
    }

    // MARK: SOCKS

    private func negotiate(_ version: SOCKSHandshake.Version, _ host: Origin.Host, _ port: UInt16) async throws(LoadError) {
        var handshake: SOCKSHandshake
        do throws(WireViolation) {
            handshake = try SOCKSHandshake(version, to: SOCKSAddress(host, port: port), user: proxy.user, password: proxy.password)
        } catch { throw LoadError(error, .connecting) }
        while true {
            var output: [UInt8] = []
            handshake.send(into: &output)
            if !output.isEmpty { try await send(output) }
            switch handshake.next() {
            case .established: return
            case .refused(let refusal):
                throw LoadError(
                    refusal.wantsCredentials ? .proxyAuthenticationRequired : .proxyRefused, phase: .connecting, party: .peer,
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
            case .end: throw LoadError(.connectionLost, phase: .connecting, party: .peer)
            }
        }
    }

    /// Some of so many bytes; none at the end.
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
        if let reason = control.stopReason { throw LoadError(reason, phase: .connecting) }
        await Poller.shared.park(transport.slot, interest, control)
        if let reason = control.stopReason { throw LoadError(reason, phase: .connecting) }
    }
}

/// How far the end of a head is at least.
enum HeadEnd {
    static func missing(in input: [UInt8]) -> Int {
        let tail = input.suffix(3)
        for (count, end) in [(3, "\r\n\r"), (2, "\r\n"), (1, "\r")] where tail.suffix(count).elementsEqual(end.utf8) {
            return 4 - count
        }
        return 4
    }
}
