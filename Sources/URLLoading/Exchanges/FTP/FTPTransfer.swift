// SPDX-License-Identifier: Apache-2.0

// One job on a leased control connection, until its bytes can be read, or have all been stored. Until then it owns the
// lease: `fail` closes the connection or gives it back, and on success `FTPExchange` takes it over.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// A data connection.
struct FTPData {
    let socket: any Transport
    /// TLS over the socket, or the socket itself.
    var transport: any Transport
}

final class FTPTransfer {
    private let connection: FTPConnection
    private let plan: FTPPlan
    private let request: Request
    private let load: LoadContext
    private let connector: FTPConnector
    private let record: TransactionRecord?
    private var data: FTPData?
    /// The connect timeout of the data connection and its TLS handshake, interrupted by the server's reply between
    /// them.
    private let dataConnectTime: ConnectTime
    private var part = FTPPlan.Part(offset: 0)
    private let isReused: Bool
    private var hasTransferred = false
    private var isOver = false

    init(
        _ attempt: FTPAttempt, on connection: FTPConnection, _ connector: FTPConnector, for load: LoadContext
    ) {
        self.connection = connection
        (plan, request, record) = (attempt.plan, attempt.request, attempt.record)
        self.load = load
        self.connector = connector
        dataConnectTime = ConnectTime(load.handle)
        isReused = connection.transfers > 0
        connection.begin()
        load.handle.attach(connection.transport.slot)
    }

    deinit { end(reusable: false) }

    /// Whether a reused connection failed before anything was transferred: it had been idle for too long.
    func failedStale(_ error: LoadError) -> Bool {
        isReused && !hasTransferred && load.stopReason == nil
            && [.connectionLost, .truncated, .ftpServiceUnavailable].contains(error.reason)
    }

    func fail(_ error: LoadError) {
        guard !isOver else { return }
        // A refused file does not affect the connection.
        let isReusable =
            connection.isReusable && load.stopReason == nil
            && [.fileNotFound, .ftpStoreRefused, .ftpCommandRefused, .ftpStorageFull, .rangeNotSatisfiable].contains(
                error.reason)
        record?.error = error
        endRecord()
        end(reusable: isReusable)
    }

    private func endRecord() {
        guard let record else { return }
        record.lease(connection.facts, connection.route, isReused: isReused)
        record.traffic.receivedHead = connection.received
        (record.traffic.headSize, record.traffic.sent) = (
            Int(connection.sent), connection.sent + record.traffic.content
        )
        load.events?.add(record)
    }

    private func end(reusable: Bool) {
        guard !isOver else { return }
        isOver = true
        closeData()
        load.handle.detach(connection.transport.slot)
        load.core.pool.ftp.giveBack(connection, reusable: reusable)
        if reusable { load.core.pool.scheduleReaping() }
    }

    private func closeData() {
        guard let data else { return }
        load.handle.detach(data.socket.slot)
        data.transport.close()
        self.data = nil
    }

    // MARK: The conversation

    /// Converses until the body can be read or has been stored.
    func run(_ login: FTPLogin) async throws(LoadError) -> FTPExchange {
        record?.mark(.requestStart)
        do { try connection.conversation.begin(plan.job) } catch { throw LoadError(ftp: error, .preparing) }
        if !connection.conversation.isLoggedIn {
            _ = try await load.handle.connecting(connection.loginConnectTime) { () throws(LoadError) in
                try await runConversation(login) { $0.isLoggedIn }
            }
        }
        let isTransferring = try await runConversation(login) { _ in false }
        hasTransferred = true
        if plan.operation == .store {
            try await store()
            return makeExchange(over: nil)
        }
        record?.mark(.requestEnd)
        record?.mark(.responseStart)
        return makeExchange(over: isTransferring ? data : nil)
    }

    /// Carries out the steps of the conversation. Returns whether there is data to transfer.
    /// - Parameter isDone: ends the conversation early.
    private func runConversation(_ login: FTPLogin, until isDone: (FTPConversation) -> Bool) async throws(LoadError)
        -> Bool
    {
        // Limits preliminary replies, so that a server cannot stall the load with them.
        var preliminaries = 0
        while !isDone(connection.conversation) {
            switch connection.conversation.step {
            case .reply:
                let reply = try await connection.reply(load.handle)
                if reply.kind == .preliminary { preliminaries += 1 }
                guard preliminaries < 32 else { throw LoadError(.unexpectedFTPReply, phase: .waiting, party: .remote) }
                try connection.take(reply)
            case .send(let line):
                try await connection.send(line, load.handle)
                connection.conversation.sent()
            case .secure:
                record?.mark(.secureStart)
                try await connection.secure { (transport) throws(LoadError) in try await connector.secure(transport) }
                record?.mark(.secureEnd)
                do { try connection.conversation.secured() } catch { throw LoadError(ftp: error, .securing) }
            case .login:
                let (credential, account) = (login.credential, load.core.configuration.ftp.account)
                do {
                    try connection.conversation.login(
                        user: credential.user, password: credential.password, account: account)
                } catch { throw LoadError(ftp: error, .preparing) }
            case .connect(let port): try await connect(port)
            case .transfer:
                try await protect()
                return true
            case .idle: return false
            }
        }
        return false
    }

    private func connect(_ port: UInt16) async throws(LoadError) {
        let conversation = connection.conversation
        part = try plan.part(size: conversation.size, modification: conversation.modification)
        let opened: any Transport
        do throws(LoadError) {
            opened = try await load.handle.connecting(dataConnectTime) { () throws(LoadError) in
                try await connector.data(beside: connection.transport, port)
            }
        } catch {
            guard try asksForPort(after: error) else { throw error }
            return
        }
        data = FTPData(socket: opened, transport: opened)
        load.handle.attach(opened.slot)
        do { try connection.conversation.connected(beginningAt: part.offset) } catch {
            throw LoadError(ftp: error, .waiting)
        }
    }

    /// Asks for another port with PASV, if that of EPSV cannot be reached: a firewall in front of the server may open
    /// only the ports that it reads in the replies to PASV. As in curl, over IPv4, because PASV has no other addresses.
    private func asksForPort(after error: LoadError) throws(LoadError) -> Bool {
        guard [.connectionRefused, .unreachable, .cannotConnect].contains(error.reason),
            connection.route.proxyChain.isDirect, connection.transport.remoteAddress?.family == .ipv4
        else { return false }
        do { return try connection.conversation.connectFailed() } catch { throw LoadError(ftp: error, .waiting) }
    }

    private func protect() async throws(LoadError) {
        // The server could not restart at the offset, and sends the file from its beginning.
        let began = connection.conversation.offset
        if began != part.offset { part = FTPPlan.Part(offset: began, end: connection.conversation.size) }
        guard connection.conversation.protectsData, let socket = data?.socket else { return }
        let secured = try await load.handle.connecting(dataConnectTime) { () throws(LoadError) in
            try await connector.secure(socket, beside: connection.transport)
        }
        data?.transport = secured
    }

    // MARK: The result

    private func store() async throws(LoadError) {
        guard var body = request.body, let data else {
            throw LoadError(
                .unexpectedFTPReply, phase: .sending, party: .remote, detail: "upload confirmed before it was sent")
        }
        if case .provided = body.content {
            body = try await load.demandBody(Hop(request: request), isReused ? nil : .first)
        }
        let opened = try await OutgoingBody.open(body, load.handle)
        let sending = FTPSending(data, connection, load, length: opened.length, isText: plan.target.path.isText)
        defer { record?.traffic.content = sending.sent }
        try await sending.send(opened)
        record?.mark(.requestEnd)
        try await connection.finish(load)
        record?.mark(.responseStart)
    }

    private func makeExchange(over data: FTPData?) -> FTPExchange {
        isOver = true
        let response = response(isListing: plan.operation == .list)
        record?.response = response
        record?.lease(connection.facts, connection.route, isReused: isReused)
        if data == nil { closeData() }
        let end = part.end.map { max(0, $0 - part.offset) }
        return FTPExchange(
            response, on: connection, data, .init(length: end, isCut: part.isCut, isText: plan.target.path.isText),
            for: load, record)
    }

    private func response(isListing: Bool) -> Response {
        let conversation = connection.conversation
        let path = plan.target.path
        guard plan.operation != .store else { return Response(url: request.url, expectedLength: 0) }
        if isListing {
            var response = Response(url: request.url, mediaType: MediaType("text/plain"))
            response.properties[FTPListed.self] = conversation.listsFacts ? .facts : .text
            return response
        }
        let name = String(decoding: path.bytes, as: UTF8.self).split(separator: "/").last.map(String.init) ?? ""
        let known = part.end.map { max(0, $0 - part.offset) } ?? conversation.announcedSize
        let length = plan.operation == .size ? conversation.size : known
        var response = Response(
            url: request.url, mediaType: FileTypes.mediaType(ofName: name), expectedLength: path.isText ? nil : length)
        response.properties[FTPModification.self] = conversation.modification.flatMap { HTTPDate(ftp: $0) }
        guard plan.operation == .retrieve, !path.isText else { return response }
        if plan.asksForPart, let end = part.end, end >= part.offset {
            response.properties[FileRange.self] = part.offset..<end
        }
        response.properties[FTPFacts.self] = FTPFacts(
            offset: part.offset, end: part.end,
            validator: FTPPlan.validator(size: conversation.size, modification: conversation.modification))
        return response
    }
}

extension FTPConnection {
    /// Reads the server's confirmation after all bytes were transferred.
    func finish(_ load: LoadContext) async throws(LoadError) {
        conversation.transferred()
        var preliminaries = 0
        while conversation.step != .idle {
            let reply = try await reply(load.handle)
            if reply.kind == .preliminary { preliminaries += 1 }
            guard preliminaries < 32 else { throw LoadError(.unexpectedFTPReply, phase: .receiving, party: .remote) }
            try take(reply)
        }
    }
}
