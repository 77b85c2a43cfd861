// SPDX-License-Identifier: Apache-2.0

// Asks name servers for what the system's resolver does not ask for. What a message means is for the caller to say.

#if HTTP3

import URLLoadingCSystem

/// Name servers, in the order in which they are asked.
package struct NameServers: Sendable {
    /// What a message is to a question.
    package enum Reply<Answer: Sendable>: Sendable {
        /// It does not answer the question: the answer may still come.
        case unrelated
        /// The answer is too large for a datagram.
        case truncated
        /// The server does not say.
        case refused
        case answer(Answer)
    }

    /// Those of resolv.conf(5), which is read for each question.
    package static let system = NameServers(given: nil)

    private let given: [SocketAddress]?
    /// For how long one answer is waited for, in nanoseconds.
    private let patience: Int64

    private init(given: [SocketAddress]?, patience: Int64 = usualPatience) {
        (self.given, self.patience) = (given, patience)
    }
    /// - Parameter patience: the nanoseconds for which one answer is waited for. A question is given up after eight
    ///   times as long, whatever servers do.
    package init(_ addresses: [SocketAddress], patience: Int64 = usualPatience) {
        self.init(given: addresses, patience: patience)
    }

    // MARK: Asking

    package static let usualPatience: Int64 = 500_000_000
    /// How often each server is asked.
    private static let rounds = 2
    /// The limit of a question, in waits for an answer.
    private static let mostWaits: Int64 = 8
    /// The number of datagrams that are read as answers to one that was sent.
    private static let mostReplies = 32

    /// Returns the answer of the first server that has one; `nil` if none has. Takes four seconds at most by default.
    ///
    /// Each question is sent from a new socket, whose port the system chooses at random, and which receives from that
    /// server only. An answer that is too large for a datagram is asked for over TCP.
    /// - Parameter read: says what a message is to the question.
    package func ask<Answer: Sendable>(
        _ question: [UInt8], _ read: @Sendable ([UInt8]) -> Reply<Answer>
    ) async -> Answer? {
        let token = StopToken.ending(after: patience * Self.mostWaits)
        let servers = await addresses(token)
        for _ in 0..<Self.rounds {
            for server in servers where token.stopReason == nil {
                if let answer = try? await ask(server, question, token, read) { return answer }
            }
        }
        return nil
    }

    private func ask<Answer: Sendable>(
        _ server: SocketAddress, _ question: [UInt8], _ token: StopToken, _ read: @Sendable ([UInt8]) -> Reply<Answer>
    ) async throws(IOFailure) -> Answer? {
        switch try await exchange(server, question, token, read) {
        case .answer(let answer): return answer
        case .unrelated, .refused: return nil
        case .truncated:
            guard let message = try await streamed(server, question, token), case .answer(let answer) = read(message)
            else { return nil }
            return answer
        }
    }

    private func exchange<Answer: Sendable>(
        _ server: SocketAddress, _ question: [UInt8], _ token: StopToken, _ read: @Sendable ([UInt8]) -> Reply<Answer>
    ) async throws(IOFailure) -> Reply<Answer> {
        let socket = try DatagramSocket(to: server)
        defer { socket.close() }
        token.attach(socket.slot)
        defer { token.detach(socket.slot) }
        let sent = question.withUnsafeBytes { bytes in
            Result { () throws(IOFailure) in try socket.send(bytes, size: bytes.count, ecn: 0) }
        }
        // One that the socket does not take now is lost, like others on their way.
        _ = try sent.get()
        let end = Poller.now() + patience
        Poller.shared.schedule(socket.slot, at: end)
        let buffer = DatagramBuffer(room: 4_096)
        var count = 0
        while true {
            try token.check(.resolve)
            guard case .moved = try socket.receive(into: buffer) else {
                guard Poller.now() < end else { return .unrelated }
                await Poller.shared.park(socket.slot, .read, token)
                continue
            }
            var reply = Reply<Answer>.unrelated
            buffer.forEach { datagram, _ in
                count += 1
                if case .unrelated = reply, count <= Self.mostReplies { reply = read(Array(datagram)) }
            }
            guard case .unrelated = reply, count < Self.mostReplies else { return reply }
        }
    }

    /// Asks over TCP, where each message has its length before it (RFC 1035 §4.2.2). Returns the first message.
    private func streamed(
        _ server: SocketAddress, _ question: [UInt8], _ token: StopToken
    ) async throws(IOFailure) -> [UInt8]? {
        let transport = try await SocketTransport.connect(to: server, token)
        defer { transport.close() }
        token.attach(transport.slot)
        defer { token.detach(transport.slot) }
        var unsent = Self.length(question) + question
        while !unsent.isEmpty {
            try token.check(.resolve)
            let progress = unsent.withUnsafeBytes { bytes in
                Result { () throws(IOFailure) in try transport.write(bytes) }
            }
            guard case .moved(let count) = try progress.get() else {
                await Poller.shared.park(transport.slot, .write, token)
                continue
            }
            unsent.removeFirst(count)
        }
        var (message, room) = ([UInt8](), [UInt8](repeating: 0, count: 4_096))
        while true {
            try token.check(.resolve)
            let progress = room.withUnsafeMutableBytes { bytes in
                Result { () throws(IOFailure) in try transport.read(into: bytes) }
            }
            switch try progress.get() {
            case .moved(let count): message += room[..<count]
            case .end: return nil
            case .blocked: await Poller.shared.park(transport.slot, .read, token)
            }
            guard message.count >= 2 else { continue }
            let length = Int(message[0]) << 8 | Int(message[1])
            if message.count >= length + 2 { return Array(message[2..<length + 2]) }
        }
    }

    private static func length(_ message: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: message.count >> 8), UInt8(truncatingIfNeeded: message.count)]
    }

    // MARK: The system's servers

    private func addresses(_ token: StopToken) async -> [SocketAddress] {
        if let given { return given }
        let text = await BlockingThreads.files.call(token) { (try? FileReader.text("/etc/resolv.conf")) ?? "" }
        return Self.addresses(inFile: text ?? "")
    }

    /// Reads the text of resolv.conf(5): three servers at most, and that of this machine if it names none.
    package static func addresses(inFile text: String) -> [SocketAddress] {
        let servers = text.split(whereSeparator: \.isNewline).lazy.compactMap { line -> SocketAddress? in
            let words = line.split { $0 == " " || $0 == "\t" }
            guard words.count > 1, words[0] == "nameserver" else { return nil }
            return SocketAddress(server: String(words[1]))
        }
        return servers.isEmpty ? [.ipv4((127, 0, 0, 1), port: port)] : Array(servers.prefix(3))
    }
    fileprivate static let port: UInt16 = 53
}

extension SocketAddress {
    /// Makes the address of a name server from text without brackets, with a zone or without.
    fileprivate init?(server text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self = .ipv4((bytes[0], bytes[1], bytes[2], bytes[3]), port: NameServers.port)
            return
        }
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard inet_pton(AF_INET6, String(parts[0]), &bytes) == 1 else { return nil }
        guard parts.count > 1 else {
            self = .ipv6(bytes, port: NameServers.port)
            return
        }
        guard let scope = try? SocketAddress.scope(of: String(parts[1])) else { return nil }
        self = .ipv6(bytes, port: NameServers.port, scope: scope)
    }
}

#endif
