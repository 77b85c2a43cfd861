// A connection that is opened by several messages before the request itself goes out: NTLM (MS-NTHT), and Negotiate where
// one is not enough (RFC 4559 §5). All of them go over the connection that this exchange leases, so that nobody comes
// between them.

import URLLoadingIO
import URLLoadingWire

extension HTTPExchange {
    /// More of a refusal than this is not waited for. There is no other connection to go on with.
    private static var mostDrained: Int { 4 << 20 }

    /// The request, with what opens its connection for whoever sends it.
    func open(_ request: PreparedRequest) async throws(LoadError) {
        let limit = owner.core.configuration.authentication.kerberosTimeout
        // Not both: a connection is the origin's, or the proxy's that stands in its place. One that is nobody's stays so.
        let own = connection.route.identity == nil ? nil : request.legs
        guard let legs = own ?? connection.forwarder?.login.flatMap({ ProofLegs($0, timeout: limit) }) else {
            return try await send(request)
        }
        let binding = binding(toProxy: legs.isProxy)
        if legs.login.takesLegs {
            try await open(with: legs, binding, request)
        } else {
            try await sendOne(legs, binding, request)
        }
    }

    /// One message with the request itself. A proxy knows whose the connection is from then on; an origin is told each time.
    private func sendOne(_ legs: ProofLegs, _ binding: [UInt8]?, _ request: PreparedRequest) async throws(LoadError) {
        var request = request
        if !legs.isProxy || !connection.isOpened {
            request.say(try await legs.first(binding, owner.handle)?.value, toProxy: legs.isProxy)
        }
        let wasOpened = connection.isOpened
        try await send(request)
        guard legs.isProxy, let head else { return }
        guard head.status == legs.refusal else {
            connection.isOpened = true
            _ = try await legs.hear(head, owner.handle)
            return
        }
        if wasOpened { return forgetProof() }
        connection.isCut = true
        hasLostProof = try await legs.hear(head, owner.handle)
    }

    private func open(with legs: ProofLegs, _ binding: [UInt8]?, _ request: PreparedRequest) async throws(LoadError) {
        guard !connection.isOpened else {
            legs.wasHeard()
            try await send(request)
            if head?.status == legs.refusal { forgetProof() }
            return
        }
        guard var said = try await legs.first(binding, owner.handle) else { return try await send(request) }
        while !said.isLast {
            guard let answer = try await leg(request.leg(saying: said.value, toProxy: legs.isProxy), legs, request)
            else { return }
            guard let words = answer.words else {
                // Nobody has to be proved here. What was answered is the result, unless a body is still to be sent.
                return try await send(request)
            }
            said = try await legs.next(words, binding, owner.handle)
        }
        var request = request
        request.say(said.value, toProxy: legs.isProxy)
        try await send(request)
        guard let head else { return }
        // What was refused here is not tried again with another.
        if head.status == legs.refusal {
            connection.isCut = true
        } else if !head.isRefusal {
            connection.isOpened = true
        }
        if legs.isProxy { _ = try await legs.hear(head, owner.handle) }
    }

    private func forgetProof() {
        hasLostProof = true
        connection.isOpened = false
        connection.isCut = true
    }

    private struct Answer {
        /// What the server says to the last message; `nil` if it does not ask for another.
        var words: [UInt8]?
    }

    /// One message without a body, and what the server says to it; `nil` if its answer is the result.
    private func leg(_ leg: PreparedRequest, _ legs: ProofLegs, _ request: PreparedRequest) async throws(LoadError)
        -> Answer?
    {
        let record = record
        (self.record, connection.record) = (nil, nil)
        defer { (self.record, connection.record) = (record, record) }
        if try !connection.begin(leg, owner) { try await connection.send(owner) }
        var found: HTTP1ResponseHead?
        while found == nil {
            found = try connection.bufferedResponse(owner, acceptsUpgrade: false)
            if found == nil { try await connection.fill(owner) }
        }
        guard let head = found else { return nil }
        let words = head.status == legs.refusal ? legs.words(in: head.headers) : nil
        let isOver = HTTPHead(head).isRefusal || request.body == nil
        guard words != nil || !isOver else {
            try receive(head, request)
            return nil
        }
        try await drain()
        guard connection.isReusable else { throw .proofBroken("the connection ends before the proof does") }
        return Answer(words: words)
    }

    private func drain() async throws(LoadError) {
        var count = 0
        while count <= Self.mostDrained {
            switch try connection.bufferedData() {
            case .chunk(let chunk)?: count += chunk.count
            case .end?: return
            case nil: try await connection.fill(owner)
            }
        }
        throw .proofBroken("the refusal is too large")
    }
}

extension HTTPHead {
    fileprivate var isRefusal: Bool { status == .unauthorized || status == .proxyAuthenticationRequired }
}

extension LoadError {
    static func proofBroken(_ words: String) -> LoadError {
        LoadError(.authenticationFailed, phase: .waiting, party: .remote, detail: words)
    }
}
