// SPDX-License-Identifier: Apache-2.0

// In this folder: one control connection of ftp

// A control connection: a transport, the reply parser, and the conversation. It has one owner at a time and no lock; it
// knows neither files nor where credentials come from.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class FTPConnection: @unchecked Sendable {
    // Unchecked: a connection has one owner at a time; the pool hands it over under its lock.
    private(set) var transport: any Transport
    let route: Route
    let identifier: Int
    var conversation: FTPConversation
    private var parser = FTPReplyParser()
    /// Bytes that were received and not consumed: the range `unread` of `input`.
    private var input = [UInt8](repeating: 0, count: 4096)
    private var unread = 0..<0
    private var sawEnd = false
    /// Whether bytes have come since the last command. A server sends what follows them only when they are acknowledged
    /// (Nagle's algorithm, RFC 896), which the system delays by 40 ms.
    private var hasHeard = false
    /// A completion reply that arrived before the data connection ended.
    private var early: FTPReply?
    private var blockedOn = PollSlot.Interest.read
    private let tap: (@Sendable (WireTapEvent) -> Void)?
    private(set) lazy var facts = ConnectionFacts(transport, identifier)

    /// The number of transfers begun.
    var transfers = 0
    /// The bytes sent and received on the control connection during the current transfer.
    private(set) var sent: Int64 = 0
    private(set) var received: Int64 = 0

    /// The rest of the connect timeout, for the login.
    let loginConnectTime: ConnectTime

    init(
        _ transport: any Transport, _ route: Route, _ identifier: Int, _ security: FTPConversation.Security,
        _ configuration: Configuration, _ loginConnectTime: ConnectTime
    ) {
        self.loginConnectTime = loginConnectTime
        self.transport = transport
        self.route = route
        self.identifier = identifier
        conversation = FTPConversation(security: security)
        tap = configuration.wireTap
    }

    deinit { transport.close() }

    func close() {
        transport.close()
        tap?(.closed(connection: identifier))
    }

    /// Whether the connection may be reused, as far as is known without asking the server.
    var isClean: Bool {
        isReusable && !transport.hasPendingInput(askingKernel: true)
    }
    var isReusable: Bool { conversation.isReusable && unread.isEmpty && !parser.isInReply && early == nil && !sawEnd }

    func begin() {
        transfers += 1
        (sent, received) = (0, 0)
    }

    /// Replaces the transport by its TLS connection. Plaintext that arrived before TLS is an error, since an attacker
    /// may have injected it (RFC 4217 §15, CVE-2011-0411).
    func secure(_ securing: (any Transport) async throws(LoadError) -> any Transport) async throws(LoadError) {
        guard unread.isEmpty, !parser.isInReply, !transport.hasPendingInput(askingKernel: true) else {
            throw LoadError(.unexpectedPlaintext, phase: .securing, party: .remote)
        }
        transport = try await securing(transport)
        tap?(.connected(transport.description, connection: identifier))
    }

    // MARK: Commands and replies

    func send(_ line: [UInt8], _ handle: LoadHandle) async throws(LoadError) {
        var rest = line[...]
        while !rest.isEmpty {
            try await handle.ensureRunning(.sending)
            let progress = rest.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try transport.write(bytes) }
            }
            switch try progress.translated(.sending) {
            case .moved(let count): rest = rest.dropFirst(count)
            case .end: throw LoadError(.connectionLost, phase: .sending, party: .remote)
            case .blocked(let interest): await Poller.shared.park(transport.slot, interest, handle)
            }
        }
        hasHeard = false
        sent += Int64(line.count)
        tap?(.head(Self.shown(line), Headers(), isSent: true, connection: identifier))
    }

    /// Returns the next reply.
    func reply(_ handle: LoadHandle) async throws(LoadError) -> FTPReply {
        if let reply = early {
            early = nil
            return reply
        }
        while true {
            if let reply = try nextReply() { return reply }
            try await handle.ensureRunning(.waiting)
            if !sawEnd, try !readNow() {
                if hasHeard { transport.acknowledge() }
                await Poller.shared.park(transport.slot, blockedOn, handle)
            }
            if sawEnd {
                throw LoadError(
                    .connectionLost, phase: .waiting, party: .remote, detail: "the control connection ended")
            }
        }
    }

    /// Reads replies during the transfer, and throws if the server has refused or aborted it.
    func listen() throws(LoadError) {
        // Limited, so that a server cannot stall the load with them.
        var preliminaries = 0
        while early == nil {
            if let reply = try nextReply() {
                switch reply.kind {
                case .preliminary:
                    preliminaries += 1
                    guard preliminaries < 32 else {
                        throw LoadError(.unexpectedFTPReply, phase: .receiving, party: .remote)
                    }
                case .completed: early = reply
                case .intermediate, .transientFailure, .permanentFailure:
                    conversation.transferred()
                    try take(reply)
                }
            } else {
                guard try readNow(), !sawEnd else { return }
            }
        }
    }

    func take(_ reply: FTPReply) throws(LoadError) {
        do { try conversation.take(reply) } catch { throw LoadError(ftp: error, .waiting) }
    }

    private func nextReply() throws(LoadError) -> FTPReply? {
        guard !unread.isEmpty else { return nil }
        let (bytes, range) = (input, unread)
        var consumed = 0
        defer { unread = unread.lowerBound + consumed..<unread.upperBound }
        do throws(WireViolation) {
            let reply = try bytes.withUnsafeBytes { bytes in
                Result { () throws(WireViolation) in
                    try parser.next(UnsafeRawBufferPointer(rebasing: bytes[range]), consumed: &consumed)
                }
            }.get()
            if let reply, let tap {
                for line in Self.shown(reply) { tap(.head(line, Headers(), isSent: false, connection: identifier)) }
            }
            return reply
        } catch { throw LoadError(error, .waiting) }
    }

    /// Reads the available bytes; `false` if there are none.
    private func readNow() throws(LoadError) -> Bool {
        guard unread.isEmpty, !sawEnd else { return !sawEnd }
        let progress = input.withUnsafeMutableBytes { room in
            Result { () throws(IOFailure) in try transport.read(into: room) }
        }
        switch try progress.translated(.waiting) {
        case .moved(let count):
            unread = 0..<count
            hasHeard = true
            received += Int64(count)
            return true
        case .end:
            sawEnd = true
            return true
        case .blocked(let interest):
            blockedOn = interest
            return false
        }
    }

    /// The command line for logs, with passwords hidden.
    private static func shown(_ line: [UInt8]) -> String {
        for verb in ["PASS ", "ACCT "] where line.starts(with: verb.utf8) { return verb + "[hidden]" }
        return String(decoding: line.dropLast(2), as: UTF8.self)
    }

    private static func shown(_ reply: FTPReply) -> [String] {
        reply.lines.indices.map { "\(reply.code)\($0 == reply.lines.indices.last ? " " : "-")\(reply.lines[$0])" }
    }
}

extension LoadHandle {
    /// Waits while the load is suspended, and throws if it is stopped. Called before every wait.
    func ensureRunning(_ phase: LoadError.Phase) async throws(LoadError) {
        if isSuspended { await untilResumed() }
        do throws(IOFailure) { try check(.connect) } catch { throw LoadError(error, phase) }
    }
}

extension Result where Success == Progress, Failure == IOFailure {
    func translated(_ phase: LoadError.Phase) throws(LoadError) -> Progress {
        switch self {
        case .success(let progress): return progress
        case .failure(let failure): throw LoadError(failure, phase)
        }
    }
}
