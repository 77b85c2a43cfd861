// SPDX-License-Identifier: Apache-2.0

// In this folder: a test server of ftp

// One control connection of the test server: sequential calls, each of which the stop token can end. It belongs to the
// task that serves it; other tasks only end it.

import FoundationEssentials
import URLLoadingIO

final class FTPServerConnection: ServedConnection, @unchecked Sendable {
    // Unchecked: everything except `token` is accessed only by the serving task.
    private let number: Int
    private let server: FTPTestServer
    private let token = StopToken()
    private var control: any Transport
    private let localAddress: SocketAddress?
    private var input: [UInt8] = []
    private var user: String?
    private var isLoggedIn = false
    private var isSecure = false
    private var protects = false
    private var offset = 0
    private var passive: SocketListener?
    private var transfers = 0

    private struct ConnectionEnded: Error {}

    init(_ socket: SocketTransport, number: Int, _ server: FTPTestServer) {
        self.server = server
        self.number = number
        control = socket
        localAddress = socket.localAddress
    }

    func end() { token.stop(.cancelled) }

    func serve() async {
        token.attach(control.slot)
        do {
            if server.configuration.security == .implicit, let tls = server.tls {
                let secure = try TLSTransport(server: tls, over: control)
                try await secure.handshake(token)
                (control, isSecure, protects) = (secure, true, true)
            }
            if try await !applyFault("") { try await reply("220 here") }
            while let line = try await nextLine() {
                server.note(line)
                let parts = line.split(separator: " ", maxSplits: 1)
                let verb = parts.first.map { $0.uppercased() } ?? ""
                if verb == "QUIT" { break }
                if try await applyFault(verb) { continue }
                try await answer(verb, parts.count > 1 ? String(parts[1]) : "")
            }
        } catch {}
        passive?.close()
        token.detach(control.slot)
        control.close()
        server.closed(number)
    }

    // MARK: Faults

    /// Applies the fault for this command. Returns whether there was one.
    private func applyFault(_ verb: String) async throws -> Bool {
        for fault in server.faults {
            switch fault {
            case .reply(verb, let text):
                try await send(text)
                return true
            case .close(verb): throw ConnectionEnded()
            case .closeOnce(verb):
                server.remove(fault)
                throw ConnectionEnded()
            case .stall(verb): try await stall()
            case .endlessReply(verb):
                while true { try await send("220-and so on\r\n") }
            case .refusesReuse where transfers > 0:
                try await reply("421 enough")
                throw ConnectionEnded()
            default: continue
            }
        }
        return false
    }

    private func stall() async throws -> Never {
        server.count { $0.stalled += 1 }
        defer { server.count { $0.stalled -= 1 } }
        // Wait until the client closes the connection.
        var bytes = [UInt8](repeating: 0, count: 1024)
        while true {
            let count = try await receive(control, &bytes)
            if count == 0 { throw ConnectionEnded() }
        }
    }

    // MARK: Commands

    private func answer(_ verb: String, _ argument: String) async throws {
        let configuration = server.configuration
        switch verb {
        case "AUTH":
            guard let tls = server.tls, !isSecure else { return try await reply("502 no TLS") }
            try await send("234 go\r\n" + (server.faults.contains(.injectsBeforeTLS) ? "230 in\r\n" : ""))
            let secure = try TLSTransport(server: tls, over: control)
            try await secure.handshake(token)
            (control, isSecure) = (secure, true)
        case "USER":
            if configuration.security == .requiresExplicit, !isSecure { return try await reply("530 AUTH first") }
            user = argument
            try await reply("331 password")
        case "PASS":
            guard let user, user == "anonymous" ? configuration.allowsAnonymous : configuration.users[user] == argument
            else { return try await reply("530 no") }
            if configuration.account != nil { return try await reply("332 account") }
            isLoggedIn = true
            try await reply("230 in")
        case "ACCT":
            guard argument == configuration.account else { return try await reply("530 no") }
            isLoggedIn = true
            try await reply("230 in")
        case "FEAT":
            guard let features = configuration.features else { return try await reply("500 what?") }
            try await reply("211-Features:\r\n" + features.map { " \($0)\r\n" }.joined() + "211 End")
        case _ where !isLoggedIn: try await reply("530 who?")
        default: try await answerLoggedIn(verb, argument)
        }
    }

    private func answerLoggedIn(_ verb: String, _ argument: String) async throws {
        switch verb {
        case "PBSZ", "OPTS", "TYPE", "NOOP": try await reply("200 ok")
        case "PROT":
            protects = argument == "P"
            try await reply("200 ok")
        case "SIZE":
            guard let file = server.file(argument) else { return try await reply("550 no such file") }
            var size = Int64(file.content.count)
            for case .wrongSize(let wrong) in server.faults { size = wrong }
            try await reply("213 \(size)")
        case "MDTM":
            guard let file = server.file(argument) else { return try await reply("550 no such file") }
            try await reply("213 \(file.modified)")
        case "EPSV", "PASV": try await openPassive(verb)
        case "REST":
            guard let count = Int(argument), count >= 0 else { return try await reply("501 no number") }
            offset = count
            try await reply("350 from there")
        case "RETR":
            guard let file = server.file(argument), offset <= file.content.count else {
                dropPassive()
                return try await reply("550 no such file")
            }
            let announced = server.configuration.announcesSize ? file.content.count : nil
            try await give(file.content.dropFirst(offset), announced: announced)
        case "LIST", "MLSD":
            let entries = server.list(argument)
            if entries.isEmpty, !argument.isEmpty, argument != "/" {
                dropPassive()
                return try await reply("550 no such folder")
            }
            try await give(Data(entries.map { Self.entry($0.0, $0.1, isFacts: verb == "MLSD") + "\r\n" }.joined().utf8))
        case "STOR": try await take(argument)
        default: try await reply("502 \(verb)?")
        }
    }

    private static func entry(_ name: String, _ file: FTPTestServer.File?, isFacts: Bool) -> String {
        if isFacts {
            guard let file else { return "type=dir; \(name)" }
            return "type=file;size=\(file.content.count);modify=\(file.modified); \(name)"
        }
        return "\(file == nil ? "d" : "-")rw-r--r-- 1 ftp ftp \(file?.content.count ?? 0) Jan 02 2026 \(name)"
    }

    // MARK: Transfers

    private func openPassive(_ verb: String) async throws {
        let isForeign = server.faults.contains(.foreignPassiveAddress)
        if verb == "EPSV", isForeign { return try await reply("500 what?") }
        passive?.close()
        guard let local = localAddress else { throw ConnectionEnded() }
        let listener = try SocketListener(local.withPort(0))
        passive = listener
        let port = listener.address.port
        if verb == "EPSV" { return try await reply("229 here (|||\(port)|)") }
        let address = isForeign ? "192,0,2,1" : "127,0,0,1"
        try await reply("227 here (\(address),\(port >> 8),\(port & 0xFF))")
    }

    private func dropPassive() {
        passive?.close()
        (passive, offset) = (nil, 0)
    }

    /// Accepts the data connection, and secures it if that was negotiated.
    private func accept() async throws -> (SocketTransport, any Transport) {
        guard let passive else { throw ConnectionEnded() }
        let socket = try await passive.accept(token)
        token.attach(socket.slot)
        server.count {
            $0.transfers += 1
            $0.openTransfers += 1
        }
        guard protects, let tls = server.tls else { return (socket, socket) }
        let secure = try TLSTransport(server: tls, over: socket)
        do { try await secure.handshake(token) } catch {
            close(socket, secure)
            throw error
        }
        if secure.negotiated?.isResumed == true { server.count { $0.resumed += 1 } }
        return (socket, secure)
    }

    private func close(_ socket: SocketTransport, _ data: any Transport) {
        token.detach(socket.slot)
        if server.faults.contains(.omitsCloseNotify) { socket.close() } else { data.close() }
        server.count { $0.openTransfers -= 1 }
        transfers += 1
        dropPassive()
    }

    /// - Parameter announced: the size in bytes that the 150 reply announces; `nil` for none.
    private func give(_ content: Data, announced: Int? = nil) async throws {
        try await reply(announced.map { "150 here it comes (\($0) bytes)" } ?? "150 here it comes")
        let faults = server.faults
        if faults.contains(.ignoresData) { try await stall() }
        if faults.contains(.completesBeforeData) { try await reply("226 done") }
        let (socket, data) = try await accept()
        var bytes = Array(content)
        var stalls = false
        var ending = "226 done"
        for fault in faults {
            switch fault {
            case .shortData(let count): bytes = Array(bytes.prefix(count))
            case .stallsData(let count): (bytes, stalls) = (Array(bytes.prefix(count)), true)
            case .abortsData(let count): (bytes, ending) = (Array(bytes.prefix(count)), "426 broken off")
            default: continue
            }
        }
        do {
            try await bytes.withUnsafeBytesAsync { try await data.send($0, token) }
            if stalls { try await stall() }
        } catch {
            close(socket, data)
            throw error
        }
        close(socket, data)
        if faults.contains(.neverCompletes) { try await stall() }
        if !faults.contains(.completesBeforeData) { try await reply(ending) }
    }

    private func take(_ path: String) async throws {
        let offset = offset
        try await reply("150 send it")
        if server.faults.contains(.ignoresData) { try await stall() }
        let (socket, data) = try await accept()
        defer { close(socket, data) }
        var content = Array((server.file(path)?.content ?? Data()).prefix(offset))
        guard content.count == offset else { return try await reply("551 there is no beginning") }
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            for case .refusesStore(let code, let limit) in server.faults where content.count >= limit {
                return try await reply("\(code) no more")
            }
            for case .stallsData(let limit) in server.faults where content.count >= limit { try await stall() }
            let count = try await receive(data, &buffer)
            if count == 0 { break }
            content += buffer[..<count]
        }
        server.put(path, Data(content))
        if server.faults.contains(.neverCompletes) { try await stall() }
        try await reply("226 stored")
    }

    // MARK: Bytes

    private func reply(_ line: String) async throws { try await send(line + "\r\n") }

    private func send(_ text: String) async throws {
        try await Array(text.utf8).withUnsafeBytesAsync { try await control.send($0, token) }
    }

    private func receive(_ transport: any Transport, _ buffer: inout [UInt8]) async throws -> Int {
        while true {
            try token.check(.read)
            switch try buffer.withUnsafeMutableBytes({ try transport.read(into: $0) }) {
            case .moved(let count): return count
            case .end: return 0
            case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
            }
        }
    }

    private func nextLine() async throws -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            if let end = input.firstIndex(of: UInt8(ascii: "\n")) {
                var line = input[..<end]
                if line.last == UInt8(ascii: "\r") { line.removeLast() }
                input.removeFirst(end + 1)
                return String(decoding: line, as: UTF8.self)
            }
            let count = try await receive(control, &buffer)
            if count == 0 { return nil }
            input += buffer[..<count]
        }
    }
}

extension [UInt8] {
    /// Lends the bytes for the duration of an asynchronous call.
    nonisolated(nonsending) fileprivate func withUnsafeBytesAsync(
        _ use: nonisolated(nonsending) (UnsafeRawBufferPointer) async throws -> Void
    ) async throws {
        guard !isEmpty else { return }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: self)
        try await use(UnsafeRawBufferPointer(copy))
    }
}
