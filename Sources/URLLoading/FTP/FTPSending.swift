// A body on its way into a server's file, read no faster than the server takes it. Meanwhile the control connection is
// listened to: a server reports there that its disk is full.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class FTPSending {
    private let socket: any Transport
    private let data: any Transport
    private let connection: FTPConnection
    private let load: LoadContext
    private let length: Int64?
    private let isText: Bool
    private var endsInCR = false
    /// Bytes of the body that have gone out.
    private(set) var sent: Int64 = 0

    private static let pieceSize = 256 * 1024

    /// - Parameter length: bytes that the body has; `nil` if that is not known.
    init(
        _ socket: any Transport, _ data: any Transport, _ connection: FTPConnection, _ load: LoadContext,
        length: Int64?,
        isText: Bool
    ) {
        self.length = length
        self.socket = socket
        self.data = data
        self.connection = connection
        self.load = load
        self.isText = isText
    }

    /// All of it, and the end.
    func send(_ body: OutgoingBody) async throws(LoadError) {
        connection.transport.slot.relay(to: socket.slot)
        socket.slot.hearReadsWhileWriting(true)
        defer {
            connection.transport.slot.unrelay()
            socket.slot.hearReadsWhileWriting(false)
        }
        var source = OutgoingBodyReader(body)
        defer { source.abandon() }
        sending: while true {
            try await load.handle.goesOn(.sending)
            switch try source.front(for: load.handle, { PiecePull($0, load.handle.leaked, data.slot) }) {
            case .bytes:
                let piece = source.chunk(atMost: Self.pieceSize)
                source.advance(piece.count)
                try await send(piece)
            case .file(let reader, let offset, let left):
                let count = Int(min(Int64(Self.pieceSize), left))
                try source.loaded(try await OutgoingBodyReader.read(reader, offset, count: count, for: load.handle))
            case .pending:
                try connection.listen()
                await Poller.shared.parkAside(data.slot, load.handle)
            case .end: break sending
            }
        }
        try await end()
    }

    // MARK: Bytes

    private func send(_ piece: Chunk) async throws(LoadError) {
        guard isText else { return try await send(piece, counting: true) }
        let lines = asLines(piece)
        try await send(lines.withUnsafeBytes { Chunk(copying: $0) }, counting: false)
        count(piece.count)
    }

    private func send(_ piece: Chunk, counting counts: Bool) async throws(LoadError) {
        var range = piece.range
        while !range.isEmpty {
            try await load.handle.goesOn(.sending)
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

    /// A server that closes the data connection says why on the control connection.
    private func lost(_ error: LoadError) async throws(LoadError) {
        if error.reason == .connectionLost { try await connection.finish(load) }
        throw error
    }

    /// The end of the data connection is the end of the file. It is not closed before the server has answered: what it
    /// sends meanwhile (the tickets of TLS) would be answered with a reset, and that might cost the last bytes.
    private func end() async throws(LoadError) {
        while true {
            try await load.handle.goesOn(.sending)
            let progress = Result { () throws(IOFailure) in try data.endWriting() }
            guard case .blocked(let interest) = try progress.translated(.sending) else { break }
            await Poller.shared.park(data.slot, interest, load.handle)
        }
        socket.finishWriting()
    }

    /// LF becomes CR LF; what is CR LF already stays so.
    private func asLines(_ piece: Chunk) -> [UInt8] {
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
