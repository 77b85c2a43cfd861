// A connection that is opened by several messages before the request itself goes out: NTLM (MS-NTHT), and Negotiate where
// one is not enough (RFC 4559 §5). All of them go over the connection that this exchange leases, so that nobody comes
// between them.

import URLLoadingIO
import URLLoadingWire

extension HTTPExchange {
    /// More of a refusal than this is not waited for. There is no other connection to go on with.
    private static var mostDrained: Int { 4 << 20 }

    func open(with legs: ProofLegs, _ request: PreparedRequest) async throws(LoadError) {
        guard !connection.isOpened else {
            try await send(request)
            if head?.status == .unauthorized { forgetProof() }
            return
        }
        var said = try await legs.first(owner)
        while !said.isLast {
            guard let answer = try await leg(request.leg(saying: said.value), request) else { return }
            guard let words = answer.words else {
                // Nobody has to be proved here. What was answered is the result, unless a body is still to be sent.
                return try await send(request)
            }
            said = try await legs.next(words, over: connection.transport, owner)
        }
        var request = request
        request.setAuthorization(said.value)
        try await send(request)
        switch head?.status {
        // What was refused here is not tried again with another.
        case .unauthorized?: connection.isCut = true
        case .proxyAuthenticationRequired?, nil: break
        default: connection.isOpened = true
        }
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
    private func leg(_ leg: PreparedRequest, _ request: PreparedRequest) async throws(LoadError) -> Answer? {
        let record = record
        (self.record, connection.record) = (nil, nil)
        defer { (self.record, connection.record) = (record, record) }
        if try !connection.begin(leg, owner) { try await connection.send(owner) }
        var found: HTTP1ResponseHead?
        while found == nil {
            found = try connection.bufferedResponse(owner)
            if found == nil { try await connection.fill(owner) }
        }
        guard let head = found else { return nil }
        let words = head.status == .unauthorized ? request.legs?.words(in: head.headers) : nil
        let isOver = [.unauthorized, .proxyAuthenticationRequired].contains(head.status) || request.body == nil
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

extension LoadError {
    static func proofBroken(_ words: String) -> LoadError {
        LoadError(.authenticationFailed, phase: .waiting, party: .peer, detail: words)
    }
}
