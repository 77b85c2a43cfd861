// SPDX-License-Identifier: Apache-2.0

// Sends a body over a data connection, reading it no faster than the server accepts it. The control connection is read
// at the same time, because a server reports there that its disk is full.

import FoundationEssentials
import URLLoadingIO

final class FTPSending {
    private let socket: any Transport
    private let data: any Transport
    private let connection: FTPConnection
    private let load: LoadContext
    private let length: Int64?
    private let isText: Bool
    private var endsInCR = false
    /// The bytes of the body that were sent.
    private(set) var sent: Int64 = 0

    private static let pieceSize = 256 * 1024

    /// - Parameter length: the length of the body in bytes; `nil` if unknown.
    init(
        _ data: FTPData, _ connection: FTPConnection, _ load: LoadContext,
        length: Int64?,
        isText: Bool
    ) {
        self.length = length
        (socket, self.data) = (data.socket, data.transport)
        self.connection = connection
        self.load = load
        self.isText = isText
    }

    /// Sends the complete body and its end.
    func send(_ body: OutgoingBody) async throws(LoadError) {
        connection.transport.slot.relay(to: socket.slot)
        socket.slot.wakeWriterForReads(true)
        defer {
            connection.transport.slot.unrelay()
            socket.slot.wakeWriterForReads(false)
        }
        let slot = data.slot
        let source = OutgoingBodyReader(body, for: load.handle) { slot.wake() }
        defer { source.abandon() }
        sending: while true {
            try await load.handle.ensureRunning(.sending)
            switch try source.nextPart() {
            case .bytes:
                let piece = source.chunk(atMost: Self.pieceSize)
                source.advance(piece.count)
                try await send(piece)
            case .file(let reader, let offset, let left):
                let count = Int(min(Int64(Self.pieceSize), left))
                try source.loaded(try await OutgoingBodyReader.read(reader, offset, count: count, for: load.handle))
            case .pending:
                try connection.listen()
                await Poller.shared.parkUntimed(data.slot, load.handle)
            case .end: break sending
            }
        }
        try await end()
    }

    // MARK: Bytes

    private func send(_ piece: Chunk) async throws(LoadError) {
        guard isText else { return try await send(piece, counting: true) }
        let lines = withCRLF(piece)
        try await send(lines.withUnsafeBytes { Chunk(copying: $0) }, counting: false)
        count(piece.count)
    }

    private func send(_ piece: Chunk, counting counts: Bool) async throws(LoadError) {
        var range = piece.range
        while !range.isEmpty {
            try await load.handle.ensureRunning(.sending)
            let outcome = Result { () throws(IOFailure) in try data.write(piece.storage.bytes(range)) }
            switch outcome {
            case .success(.moved(let moved)):
                range = range.lowerBound + moved..<range.upperBound
                if counts { count(moved) }
            case .success(.blocked(let interest)):
                try connection.listen()
                await Poller.shared.park(data.slot, interest, load.handle)
            case .success(.end): try await lost(LoadError(.connectionLost, phase: .sending, party: .remote))
            case .failure(let failure): try await lost(LoadError(failure, .sending))
            }
        }
    }

    private func count(_ moved: Int) {
        sent += Int64(moved)
        if moved > 0 { load.sent(TransferProgress(count: moved, total: sent, expected: length)) }
    }

    /// Throws the server's reply instead, if it has closed the data connection: the reply gives the reason.
    private func lost(_ error: LoadError) async throws(LoadError) {
        if error.reason == .connectionLost { try await connection.finish(load) }
        throw error
    }

    /// Ends the file by ending the data connection. The socket stays open for reading until the server has replied: TLS
    /// tickets that it sends meanwhile would otherwise cause a reset, which might cost the last bytes.
    private func end() async throws(LoadError) {
        while true {
            try await load.handle.ensureRunning(.sending)
            let progress = Result { () throws(IOFailure) in try data.endWriting() }
            guard case .blocked(let interest) = try progress.translated(.sending) else { break }
            await Poller.shared.park(data.slot, interest, load.handle)
        }
        socket.finishWriting()
    }

    /// Converts LF to CR LF; an existing CR LF stays.
    private func withCRLF(_ piece: Chunk) -> [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(piece.count + piece.count / 16)
        for byte in piece.storage.bytes(piece.range) {
            if byte == UInt8(ascii: "\n"), !endsInCR { lines.append(UInt8(ascii: "\r")) }
            lines.append(byte)
            endsInCR = byte == UInt8(ascii: "\r")
        }
        return lines
    }
}
